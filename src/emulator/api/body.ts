import type { HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { parseJson, readText } from '../http/read-body.ts'
import { fromText } from './fields.ts'

/**
 * Reads the body of a request, JSON or a form.
 * @throws HTTPException 400, 413 or 415
 */
export async function readBody(req: HonoRequest): Promise<unknown> {
  const mediaType = req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  const parse = Object.hasOwn(parsers, mediaType) ? parsers[mediaType] : undefined
  if (parse === undefined) {
    throw new HTTPException(415, { message: `the content type has to be ${Object.keys(parsers).join(' or ')}` })
  }
  return parse(await readText(req))
}

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'application/json': parseJson,
  'application/x-www-form-urlencoded': (text) => fromText(new URLSearchParams(text)),
}
