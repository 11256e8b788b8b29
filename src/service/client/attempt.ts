import { TextDecoder } from '../../internal/realm.ts'
import { ApiError, redacted } from './api-error.ts'
import type { ClientConfig } from './options.ts'
import { type ApiRequest, failure } from './request.ts'

export interface ApiAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Maximum answer size (bytes), ten times a page of 100 webhooks. */
const maxAnswer = 4 * 1_024 * 1_024

/** @throws ApiError `timeout`, `connection`, `aborted`, or `bad_answer` if the answer is too large */
export async function sendOnce(request: ApiRequest, config: ClientConfig, signal?: AbortSignal): Promise<ApiAnswer> {
  const { timeoutMs } = config
  // Not AbortSignal.any or AbortSignal.timeout: both leak for as long as the caller's signal lives.
  const controller = new AbortController()
  let stop = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = () => {
      controller.abort()
      reject(controller.signal.reason)
    }
  })
  const timer = setTimeout(stop, timeoutMs)
  signal?.addEventListener('abort', stop)
  try {
    signal?.throwIfAborted()
    // Race, because a custom fetch may ignore its signal.
    return await Promise.race([exchange(request, config, controller.signal), stopped])
  } catch (error) {
    if (signal?.aborted) throw failure(request, 'aborted', 'aborted', { cause: signal.reason })
    if (controller.signal.aborted) throw failure(request, 'timeout', `no answer within ${timeoutMs} ms`)
    throw error instanceof ApiError ? error : connectionFailure(request, config, error)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

async function exchange(request: ApiRequest, config: ClientConfig, signal: AbortSignal): Promise<ApiAnswer> {
  const { fetch, baseUrl } = config
  const response = await fetch(`${baseUrl}${request.path}${request.query}`, {
    method: request.endpoint.method,
    headers: makeHeaders(request, config),
    body: request.body ?? null,
    // Following a redirect would send the credentials to another server.
    redirect: 'manual',
    signal,
  })
  const { status, headers } = response
  const text = await readText(response, signal)
  if (text !== undefined) return { status, headers, text }
  const limit = `more than ${maxAnswer / 1_024 / 1_024} MiB (is the base URL right?)`
  throw failure(request, 'bad_answer', `the service answered ${status} with ${limit}`, { status })
}

/** Streams the body. Stops and returns `undefined` past the maximum size. */
async function readText(response: Response, signal: AbortSignal): Promise<string | undefined> {
  // A custom fetch may return a response without a stream.
  if (typeof response.body?.getReader !== 'function') {
    const text = await response.text()
    return text.length > maxAnswer ? undefined : text
  }
  const reader = response.body.getReader()
  const cancel = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    size += chunk.value.byteLength
    if (size > maxAnswer) return void cancel()
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}

const makeHeaders = ({ body }: ApiRequest, { headers }: ClientConfig): Record<string, string> => ({
  ...headers,
  accept: 'application/json',
  ...(body !== undefined && { 'content-type': 'application/json' }),
})

/** Drops the cause: the error of a custom fetch may contain the request with its credentials. */
function connectionFailure(request: ApiRequest, { secrets }: ClientConfig, error: unknown): ApiError {
  const { code, message } = Object((error as Partial<Error> | undefined)?.cause ?? error)
  const reason = redacted(String(code ?? message ?? error), secrets)
  return failure(request, 'connection', `no answer: ${reason}`)
}
