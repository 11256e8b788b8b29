import { recogniseAnyCopy } from './internal/any-copy.ts'

/**
 * Every code a {@link WebhookError} can carry. The set is closed: callers branch on the code and never read messages.
 *
 * - `invalid_option`: an option or a registration is invalid; thrown when it is given.
 * - `method_not_allowed`, `unsupported_media_type`, `too_large`, `incomplete`, `body_consumed`, `unauthorized`,
 *   `malformed`: the delivery was rejected.
 * - `overloaded`, `closing`, `unavailable`, `in_progress`: the receiver cannot take the delivery now.
 * - `handler_failed`: a handler failed and the acknowledgement waited for it, or its transaction was still open.
 * - `invalid_transaction`: a handler called `context.transaction` twice, after its end, or with an inbox that has no database.
 * - `timeout`, `lease_lost` (and `closing`): the reason of an aborted `context.signal`.
 * - `internal`: a function given by the user, such as `eventKey`, threw.
 */
export const webhookErrorCodes = [
  'invalid_option',
  'method_not_allowed',
  'unsupported_media_type',
  'too_large',
  'incomplete',
  'body_consumed',
  'unauthorized',
  'malformed',
  'overloaded',
  'closing',
  'unavailable',
  'in_progress',
  'handler_failed',
  'invalid_transaction',
  'timeout',
  'lease_lost',
  'internal',
] as const

/** One of {@link webhookErrorCodes}. */
export type WebhookErrorCode = (typeof webhookErrorCodes)[number]

/**
 * The one error class of this package. Its message never holds a secret, a payload's value or a URL's query.
 *
 * `error instanceof WebhookError` is also true for an error of another copy of this package: an error made by the
 * CommonJS build is recognised by the ES module build, and the other way round.
 */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** The cause, for code to branch on. */
  readonly code: WebhookErrorCode

  constructor(code: WebhookErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

recogniseAnyCopy(WebhookError, 'WebhookError')
