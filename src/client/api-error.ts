/**
 * Every code an {@link ApiError} can carry. The set is closed: callers branch on the code and never read messages.
 *
 * - `invalid_params`: a parameter makes no sense; nothing was sent.
 * - `unauthorized` (401), `forbidden` (403), `not_found` (404), `rate_limited` (429), `refused` (any other refusal),
 *   `server` (5xx): what the service answered.
 * - `timeout`, `connection`: there was no answer. It is not known whether the service did what it was asked to.
 * - `aborted`: the caller's signal was.
 * - `bad_answer`: the answer is not one of the service's API, or is a redirect, which is not followed.
 */
export const apiErrorCodes = [
  'invalid_params',
  'unauthorized',
  'forbidden',
  'not_found',
  'rate_limited',
  'refused',
  'server',
  'timeout',
  'connection',
  'aborted',
  'bad_answer',
] as const

/** One of {@link apiErrorCodes}. */
export type ApiErrorCode = (typeof apiErrorCodes)[number]

/** What an {@link ApiError} knows of the call that failed. */
export interface ApiErrorDetails {
  readonly method: string
  /** The path below the base URL, without the query. */
  readonly path: string
  /** The status of the answer, if there was one. */
  readonly status?: number | undefined
  /** The service's own words, without credentials and URLs. */
  readonly serviceMessage?: string | undefined
  /** How long the service asked to wait, in ms. */
  readonly retryAfterMs?: number | undefined
}

/** A call of the service's API that failed. It never holds a secret, a parameter's value or a URL's query. */
export class ApiError extends Error implements ApiErrorDetails {
  override readonly name = 'ApiError'
  /** What went wrong, for code to branch on. */
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

/** A text of others without our secrets and without URLs, whose path, query and `user:password@` can be secrets too. */
export function redacted(text: string, secrets: readonly string[]): string {
  const written = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)])
  const withoutSecrets = written.reduce((rest, each) => rest.replaceAll(each, '[secret]'), text)
  return withoutSecrets.replace(/\bhttps?:\/\/[^\s"'<>]+/gi, '[url]').slice(0, 500)
}
