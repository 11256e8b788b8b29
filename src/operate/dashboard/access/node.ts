import { WebhookError } from '../../../errors.ts'
import type { Logger } from '../../../internal/logger.ts'
import type { NodeRequest, NodeResponse } from '../options.ts'
import { formFromParsed } from './form.ts'
import { linesType, plain } from './respond.ts'

/** Runs a web request handler on a Node request. Never rejects. */
export async function answerNode(
  answer: (request: Request) => Promise<Response>,
  request: NodeRequest,
  response: NodeResponse,
  logger: Logger,
): Promise<void> {
  try {
    const answered = await toRequest(request).then(answer, (error) =>
      plain(error.code === 'body_consumed' ? 500 : 400, error.message),
    )
    await write(answered, request, response)
  } catch (error) {
    // `authorize` may return a used `Response`, or other code may have started this response.
    logger.error({ err: error }, 'the dashboard could not send its response')
    if (!response.headersSent) response.writeHead(500, {})
    response.end()
  }
}

async function write(answered: Response, request: NodeRequest, response: NodeResponse): Promise<void> {
  const headers: Record<string, string | string[]> = Object.fromEntries(answered.headers)
  const cookies = answered.headers.getSetCookie()
  if (cookies.length > 0) headers['set-cookie'] = cookies
  if (answered.headers.get('content-type') === linesType && answered.body !== null) {
    response.writeHead(answered.status, headers)
    if (request.method !== 'HEAD') return sendParts(answered.body, response)
    await answered.body.cancel()
    return void response.end()
  }
  const body = new Uint8Array(await answered.arrayBuffer())
  response.writeHead(answered.status, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Streams a body with backpressure. Destroys the response on a read error: the client must see that it was cut off. */
async function sendParts(body: ReadableStream<Uint8Array>, response: NodeResponse): Promise<void> {
  const reader = body.getReader()
  let isClosed = response.destroyed === true
  let resume = (): void => {}
  response.once('close', () => {
    isClosed = true
    resume()
  })
  const drained = (resolve: () => void) => {
    resume = resolve
    response.once('drain', resolve)
  }
  try {
    for (let part = await reader.read(); part.value !== undefined && !isClosed; part = await reader.read())
      if (!response.write(part.value) && !isClosed) await new Promise<void>(drained)
    response.end()
  } catch (error) {
    response.destroy()
    throw error
  } finally {
    await reader.cancel()
  }
}

/** @throws WebhookError `body_consumed`, or `incomplete` for an invalid URL */
async function toRequest(request: NodeRequest): Promise<Request> {
  const { method = 'GET', url = '/', originalUrl = url, socket } = request
  const headers = new Headers()
  // Skips the pseudo-headers of HTTP/2.
  for (const [name, value] of Object.entries(request.headers))
    if (!name.startsWith(':')) for (const each of [value ?? []].flat()) headers.append(name, each)
  const host = request.headers['host'] ?? request.headers[':authority'] ?? 'localhost'
  const scheme = 'encrypted' in socket ? 'https' : 'http'
  const address = `${scheme}://${host}${originalUrl.replace(/^https?:\/\/[^/?#]*/i, '')}`
  if (!URL.canParse(address)) throw new WebhookError('incomplete', 'the URL is invalid')
  if (method === 'GET' || method === 'HEAD') return new Request(address, { method, headers })
  const wasRead = request.readableDidRead === true || request.body !== undefined
  const body = wasRead ? formFromParsed(request.body) : toStream(request)
  return new Request(address, { method, headers, body, duplex: 'half' } as RequestInit)
}

function toStream(request: NodeRequest): ReadableStream<Uint8Array> {
  const chunks = request[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}
