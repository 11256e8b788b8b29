import { recogniseAnyCopy } from '../errors.ts'

/**
 * Every code of an {@link ApiError}. The set is closed: branch on the code, and never on the message.
 *
 * - `invalid_params`: a parameter is invalid. Nothing was sent.
 * - `unauthorized` (401), `forbidden` (403), `not_found` (404), `rate_limited` (429), `server` (5xx): the service's answer.
 * - `rejected`: any other answer by which the service rejects the call, such as 400 or 409.
 * - `timeout`, `connection`: no answer arrived. The service may or may not have carried out the call.
 * - `aborted`: the caller aborted the signal.
 * - `bad_answer`: the answer does not look like the service's API, is larger than 4 MiB, or is a redirect. Redirects are not
 *   followed.
 */
export const apiErrorCodes = [
  'invalid_params',
  'unauthorized',
  'forbidden',
  'not_found',
  'rate_limited',
  'rejected',
  'server',
  'timeout',
  'connection',
  'aborted',
  'bad_answer',
] as const

/** One of {@link apiErrorCodes}. */
export type ApiErrorCode = (typeof apiErrorCodes)[number]

/** The details of a failed call in an {@link ApiError}. */
export interface ApiErrorDetails {
  /** The HTTP method of the call. */
  readonly method: string
  /** The path below the base URL, without the query. */
  readonly path: string
  /** The HTTP status of the answer. `undefined` if no answer arrived. */
  readonly status?: number | undefined
  /** The service's own words, without credentials and URLs, cut to 500 characters. */
  readonly serviceMessage?: string | undefined
  /** The pause that the service asked for, in ms. */
  readonly retryAfterMs?: number | undefined
}

/** A failed call of the service's API. It never contains a secret, the value of a parameter, or the query of a URL. */
export class ApiError extends Error implements ApiErrorDetails {
  override readonly name = 'ApiError'
  /** The kind of failure, for code to branch on. */
  readonly code: ApiErrorCode
  readonly method: string
  readonly path: string
  readonly status: number | undefined
  readonly serviceMessage: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(code: ApiErrorCode, message: string, details: ApiErrorDetails, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.method = details.method
    this.path = details.path
    this.status = details.status
    this.serviceMessage = details.serviceMessage
    this.retryAfterMs = details.retryAfterMs
  }
}

recogniseAnyCopy(ApiError, 'ApiError')

/**
 * Removes secrets and URLs from a text of another program, and cuts it to 500 characters. The path, the query and the
 * `user:password@` of a URL can all be secrets.
 */
export function redacted(text: string, secrets: readonly string[]): string {
  // The longest comes first, because one can contain another.
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]).sort((a, b) => b.length - a.length)
  const withoutSecrets = forms.reduce((result, form) => result.replaceAll(form, '[secret]'), text)
  return withoutSecrets.replace(/\bhttps?:\/\/[^\s"'<>]+/gi, '[url]').slice(0, 500)
}
