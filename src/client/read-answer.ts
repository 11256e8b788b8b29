import type * as z from 'zod'
import { type ApiErrorCode, redacted } from './api-error.ts'
import type { Answer } from './attempt.ts'
import type { ClientConfig } from './options.ts'
import { type ApiRequest, failure } from './request.ts'

const codes: Readonly<Record<number, ApiErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
}

/**
 * The result in an answer.
 * @throws ApiError for a rejection, and `bad_answer` for what is no answer of the service's API
 */
export function readAnswer<Schema extends z.ZodType>(
  request: ApiRequest,
  answer: Answer,
  schema: Schema,
  { secrets }: ClientConfig,
): z.output<Schema> {
  const { status } = answer
  const body = parsed(answer.text)
  if (status >= 400 || isFailure(body)) {
    const code = codes[status] ?? (status >= 500 ? 'server' : 'rejected')
    const words = typeof body?.['message'] === 'string' ? redacted(body['message'], secrets) : undefined
    const message = `the service answered ${status}${words === undefined ? '' : `: ${words}`}`
    throw failure(request, code, message, { status, serviceMessage: words, retryAfterMs: askedWaitMs(answer) })
  }
  if (status < 200 || status >= 300) {
    const hint = 'redirects are not followed, as the credentials would go along (is it the http of an https base URL?)'
    throw failure(request, 'bad_answer', `the service answered ${status}; ${hint}`, { status })
  }
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const field = result.error.issues[0]?.path.join('.')
  const fault = field
    ? `whose ${field} is missing or of another type`
    : 'that is no JSON object (is the base URL right?)'
  throw failure(request, 'bad_answer', `the service answered ${status} with a body ${fault}`, { status })
}

/** A JSON object; nothing at all is as good as an empty one. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text.trim() || '{}')
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** A webhook's check can answer with the status of the receiver: 202, say, and that it failed. */
const isFailure = (body: Record<string, unknown> | undefined): boolean =>
  body?.['status'] === 'fail' || body?.['status'] === 'error'

/** How long an answer asks to wait, in ms, if it does: Retry-After in seconds or as a date, or the service's own header. */
export function askedWaitMs({ status, headers }: Pick<Answer, 'status' | 'headers'>): number | undefined {
  // The service's own header comes with every answer; only in a rejection for the rate does it say anything.
  const asked = headers.get('retry-after') ?? (status === 429 ? headers.get('x-ratelimit-retry-after') : null)
  if (asked === null) return undefined
  if (/^\d+(\.\d+)?$/.test(asked)) return Number(asked) * 1_000
  // By its weekday, since Date.parse finds dates in '-5' and 'soon 5', too.
  const ms = /^(mon|tue|wed|thu|fri|sat|sun)/i.test(asked) ? Date.parse(asked) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
