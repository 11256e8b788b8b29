import type * as z from 'zod'
import { type ApiErrorCode, redacted } from './api-error.ts'
import type { ApiAnswer } from './attempt.ts'
import type { ClientConfig } from './options.ts'
import { type ApiRequest, failure } from './request.ts'

const codes: Readonly<Record<number, ApiErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
}

/** @throws ApiError `bad_answer`, or the code for the status if the service rejects the call */
export function readAnswer<Schema extends z.ZodType>(
  request: ApiRequest,
  answer: ApiAnswer,
  schema: Schema,
  { secrets }: ClientConfig,
): z.output<Schema> {
  const { status } = answer
  const body = parsed(answer.text)
  if (status >= 400 || isFailure(body)) {
    const code = codes[status] ?? (status >= 500 ? 'server' : 'rejected')
    const serviceMessage = typeof body?.['message'] === 'string' ? redacted(body['message'], secrets) : undefined
    const message = `the service answered ${status}${serviceMessage === undefined ? '' : `: ${serviceMessage}`}`
    throw failure(request, code, message, { status, serviceMessage, retryAfterMs: requestedDelayMs(answer) })
  }
  if (status < 200 || status >= 300) {
    const hint = 'redirects are not followed, to keep the credentials here (is the base URL http instead of https?)'
    throw failure(request, 'bad_answer', `the service answered ${status}; ${hint}`, { status })
  }
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const field = result.error.issues[0]?.path.join('.')
  const fault = field
    ? `whose ${field} is missing or of another type`
    : 'that is not a JSON object (is the base URL right?)'
  throw failure(request, 'bad_answer', `the service answered ${status} with a body ${fault}`, { status })
}

/** Parses a JSON object. An empty body counts as an empty object. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text.trim() || '{}')
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** A failed webhook check may carry the receiver's own status, such as 202. Only the body tells. */
const isFailure = (body: Record<string, unknown> | undefined): boolean =>
  body?.['status'] === 'fail' || body?.['status'] === 'error'

/** Reads the requested delay (ms) from Retry-After (seconds or a date) or from the service's own header. */
function requestedDelayMs({ status, headers }: Pick<ApiAnswer, 'status' | 'headers'>): number | undefined {
  // The service's own header comes with every answer, and counts only with 429.
  const value = headers.get('retry-after') ?? (status === 429 ? headers.get('x-ratelimit-retry-after') : null)
  if (value === null) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000
  // Date.parse alone would accept '-5' and 'soon 5'. HTTP dates begin with a weekday.
  const ms = /^(mon|tue|wed|thu|fri|sat|sun)/i.test(value) ? Date.parse(value) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
