import type { Handler, HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { parseJson, readText } from '../http/read-body.ts'

/** The JSON in the body of a request. */
export async function jsonBody(request: HonoRequest): Promise<unknown> {
  return parse(request, await readText(request))
}

/** The same where the body may be left out. */
export async function optionalJsonBody(request: HonoRequest): Promise<unknown> {
  const text = await readText(request)
  return text === '' ? undefined : parse(request, text)
}

function parse(request: HonoRequest, text: string): unknown {
  if (!/^application\/json *(;|$)/i.test(request.header('content-type') ?? '')) {
    throw new HTTPException(415, { message: 'the content type of the body has to be application/json' })
  }
  return parseJson(text)
}

/** Answers the methods that a path does not take. */
export function only(...methods: readonly string[]): Handler {
  const allow = methods.join(', ')
  return (context) => {
    context.header('Allow', allow)
    throw new HTTPException(405, { message: `${context.req.path} takes ${allow}` })
  }
}
