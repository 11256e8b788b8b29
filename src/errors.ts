/**
 * Every code a {@link WebhookError} can carry. The set is closed: callers branch on the code and never read messages.
 *
 * - `invalid_option`: an option or a registration is invalid; thrown when it is given.
 * - `method_not_allowed`, `unsupported_media_type`, `too_large`, `incomplete`, `body_consumed`, `unauthorized`,
 *   `malformed`: the delivery was rejected.
 * - `overloaded`, `closing`, `unavailable`, `in_progress`: the receiver cannot take the delivery now.
 * - `handler_failed`: a handler failed and the acknowledgement waited for it, or its transaction was still open.
 * - `invalid_transaction`: a handler called `context.transaction` twice, after its end, or with an inbox that has no database.
 * - `timeout`, `stopped`, `lease_lost` (and `closing`): the reason of an aborted `context.signal`.
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
  'stopped',
  'lease_lost',
  'internal',
] as const

/** One of {@link webhookErrorCodes}. */
export type WebhookErrorCode = (typeof webhookErrorCodes)[number]

/**
 * The one error class of this package. Its message never holds a secret, a payload's value or a URL's query.
 *
 * `error instanceof WebhookError` is also true for an error of another copy of this package: an error made by the
 * CommonJS build is recognised by the ES module build, and vice versa.
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

/**
 * Makes `instanceof` recognise the instances of every copy of a class. A program can load this package both as ES
 * modules and as CommonJS, or contain another copy in a bundle. For a subclass, `instanceof` works as usual.
 */
export function recogniseAnyCopy(Class: { readonly prototype: object }, name: string): void {
  const brand = Symbol.for(`media-webhooks.${name}`)
  Object.assign(Class.prototype, { [brand]: true })
  Object.defineProperty(Class, Symbol.hasInstance, {
    value(this: unknown, value: unknown) {
      if (this !== Class) return Function.prototype[Symbol.hasInstance].call(this as () => void, value)
      try {
        return (value as Record<symbol, unknown> | undefined | null)?.[brand] === true
      } catch {
        // A revoked proxy, which can be thrown like any other value.
        return false
      }
    },
  })
}
