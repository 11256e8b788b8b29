import type { HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { readText } from '../read-text.ts'
import { fromText } from './fields.ts'

/**
 * Reads the body of a request, JSON or a form.
 * @throws HTTPException 400, 413 or 415
 */
export async function readBody(req: HonoRequest): Promise<unknown> {
  const mediaType = req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  const parse = Object.hasOwn(parsers, mediaType) ? parsers[mediaType] : undefined
  if (parse === undefined) throw unsupported(`the content type has to be ${Object.keys(parsers).join(' or ')}`)
  if (req.header('content-encoding') !== undefined) throw unsupported('the body has to be sent as it is, not encoded')
  return parse(await readText(req))
}

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'application/json': parseJson,
  'application/x-www-form-urlencoded': (text) => fromText(new URLSearchParams(text)),
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Its own message quotes from the text.
    throw new HTTPException(400, { message: text === '' ? 'the body is missing' : 'the body is not JSON' })
  }
}

const unsupported = (message: string) => new HTTPException(415, { message })
