import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request with the options of `fetch`, which does not allow all headers. */
interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The parsed JSON, or the text. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of any answer.
  readonly body: any
}

/** Sends a request on a new connection. */
export async function ask(url: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Answered> {
  const isJson = body !== undefined && typeof body !== 'string'
  const outgoing = request(url, {
    method,
    agent: false,
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
  })
  outgoing.end(isJson ? JSON.stringify(body) : body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const said = await text(incoming)
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    body: incoming.headers['content-type']?.startsWith('application/json') ? JSON.parse(said) : said,
  }
}
