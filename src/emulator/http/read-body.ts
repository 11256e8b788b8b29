import type { HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { bodyLimit } from '../shared/undocumented.ts'

/**
 * Reads the body of a request as text. It stops at the limit, whatever the content length is said to be. (Not
 * hono/body-limit: with a server that leaves the global Request alone, it fails for a body without Content-Length.)
 * @throws HTTPException 400, 413, or 415 when it is encoded
 */
export async function readText({ raw }: HonoRequest): Promise<string> {
  if (raw.headers.has('content-encoding')) {
    throw new HTTPException(415, { message: 'the body has to be sent as it is, not encoded' })
  }
  if (Number(raw.headers.get('content-length')) > bodyLimit) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = raw.body?.getReader()
  const read = () => reader?.read().catch(brokenOff)
  for (let chunk = await read(); chunk?.value; chunk = await read()) {
    size += chunk.value.length
    if (size > bodyLimit) throw tooLarge()
    chunks.push(chunk.value)
  }
  return decode(Buffer.concat(chunks))
}

/** @throws HTTPException 400 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Its own message quotes from the text.
    throw new HTTPException(400, { message: text === '' ? 'the body is missing' : 'the body is not JSON' })
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new HTTPException(400, { message: 'the body is not UTF-8' })
  }
}

function brokenOff(): never {
  throw new HTTPException(400, { message: 'the body broke off' })
}

const tooLarge = () => new HTTPException(413, { message: `the body is larger than ${bodyLimit} bytes` })
