import type { HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { bodyLimit } from '../shared/undocumented.ts'

/**
 * Reads a request's body as text, up to the limit, whatever Content-Length says. Not hono/body-limit: it fails for a
 * body without Content-Length on a server that doesn't replace the global Request.
 * @throws HTTPException 400 if the body is cut off or not UTF-8, 413 if it is too large, 415 if it is compressed
 */
export async function readText({ raw }: HonoRequest): Promise<string> {
  if (raw.headers.has('content-encoding')) {
    throw new HTTPException(415, { message: 'the body must not be compressed: send it without Content-Encoding' })
  }
  if (Number(raw.headers.get('content-length')) > bodyLimit) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = raw.body?.getReader()
  const read = () => reader?.read().catch(cutOff)
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
    // JSON.parse quotes the text in its message. The text may hold a secret.
    throw new HTTPException(400, { message: text === '' ? 'the body is missing' : 'the body is not JSON' })
  }
}

/** @throws HTTPException like {@link readText}, and 415 for another content type */
export async function readJson(request: HonoRequest): Promise<unknown> {
  return parseAsJson(request, await readText(request))
}

/** Reads a request's JSON body. Resolves with `undefined` for an empty one. */
export async function readOptionalJson(request: HonoRequest): Promise<unknown> {
  const text = await readText(request)
  return text === '' ? undefined : parseAsJson(request, text)
}

function parseAsJson(request: HonoRequest, text: string): unknown {
  if (!/^application\/json *(;|$)/i.test(request.header('content-type') ?? '')) {
    throw new HTTPException(415, { message: 'the content type of the body must be application/json' })
  }
  return parseJson(text)
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new HTTPException(400, { message: 'the body is not UTF-8' })
  }
}

function cutOff(): never {
  throw new HTTPException(400, { message: 'the body was cut off' })
}

const tooLarge = () => new HTTPException(413, { message: `the body is larger than ${bodyLimit} bytes` })
