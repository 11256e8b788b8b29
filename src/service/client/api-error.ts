import { recogniseAnyCopy } from '../../errors.ts'

/**
 * The codes of an {@link ApiError}. Branch on the code, never on the message.
 *
 * - `invalid_params`: a parameter is invalid. Nothing was sent.
 * - `unauthorized` (401), `forbidden` (403), `not_found` (404), `rate_limited` (429), `server` (5xx): the service's
 *   answer.
 * - `rejected`: the service rejected the call with another status, such as 400 or 409.
 * - `timeout`, `connection`: no answer arrived. The service may have carried out the call.
 * - `aborted`: the caller aborted the signal.
 * - `bad_answer`: the answer doesn't look like the service's API, exceeds 4 MiB, or is a redirect (never followed).
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

/** Describes a failed call. */
export interface ApiErrorDetails {
  readonly method: string
  /** The path below the base URL, without the query. */
  readonly path: string
  /** The HTTP status, or `undefined` if no answer arrived. */
  readonly status?: number | undefined
  /** The service's message, without credentials and URLs, cut to 500 characters. */
  readonly serviceMessage?: string | undefined
  /** How long the service asked to wait, in ms. */
  readonly retryAfterMs?: number | undefined
}

/** A failed API call. Never contains a secret, a parameter value or the query of a URL. */
export class ApiError extends Error implements ApiErrorDetails {
  override readonly name = 'ApiError'
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

/** Removes secrets and URLs, whose path, query and credentials may all be secret. Cuts to 500 characters. */
export function redacted(text: string, secrets: readonly string[]): string {
  // Longest first: one can contain another.
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]).sort((a, b) => b.length - a.length)
  const withoutSecrets = forms.reduce((result, form) => result.replaceAll(form, '[secret]'), text)
  return withoutSecrets.replace(/\bhttps?:\/\/[^\s"'<>]+/gi, '[url]').slice(0, 500)
}
