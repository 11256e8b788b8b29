import { type ApiError, redacted } from './api-error.ts'
import type { ClientConfig } from './options.ts'
import { type ApiRequest, failure } from './request.ts'

/** A complete answer of the service. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * Sends a request once.
 * @throws ApiError `timeout`, `connection` or `aborted`
 */
export async function attempt(request: ApiRequest, config: ClientConfig, signal?: AbortSignal): Promise<Answer> {
  const { fetch, timeoutMs } = config
  // Not AbortSignal.any and AbortSignal.timeout: they stay in memory as long as the caller's signal does.
  const controller = new AbortController()
  const stop = () => controller.abort()
  const timer = setTimeout(stop, timeoutMs)
  signal?.addEventListener('abort', stop)
  try {
    signal?.throwIfAborted()
    const response = await fetch(`${config.baseUrl}${request.path}${request.query}`, {
      method: request.endpoint.method,
      headers: headersOf(request, config),
      body: request.body ?? null,
      // A redirect would send the credentials to another server.
      redirect: 'manual',
      signal: controller.signal,
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch (error) {
    if (signal?.aborted) throw failure(request, 'aborted', 'aborted', { cause: signal.reason })
    if (controller.signal.aborted) throw failure(request, 'timeout', `no answer within ${timeoutMs} ms`)
    throw connectionFailure(request, config, error)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

const headersOf = ({ body }: ApiRequest, { headers }: ClientConfig): Record<string, string> => ({
  ...headers,
  accept: 'application/json',
  ...(body !== undefined && { 'content-type': 'application/json' }),
})

/** Leaves out the cause: the error of a user's fetch can contain the request with its credentials. */
function connectionFailure(request: ApiRequest, { secrets }: ClientConfig, error: unknown): ApiError {
  const { code, message } = Object((error as Partial<Error> | undefined)?.cause ?? error)
  const reason = redacted(String(code ?? message ?? error), secrets)
  return failure(request, 'connection', `no answer: ${reason}`)
}
