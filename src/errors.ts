/**
 * Every code a {@link WebhookError} can carry. A closed set: branch on the code, never on the message.
 *
 * - `invalid_option`: an option or a registration is invalid. Thrown at once, where you pass it.
 * - `method_not_allowed`, `unsupported_media_type`, `too_large`, `incomplete`, `body_consumed`, `unauthorized`,
 *   `malformed`: the delivery was rejected.
 * - `overloaded`, `closing`, `unavailable`, `in_progress`: the receiver can't accept the delivery now.
 * - `handler_failed`: a handler failed before the acknowledgement (`ack: 'handled'`), or while its transaction was open.
 * - `invalid_transaction`: `context.transaction` called twice, after the handler ended, or without a database.
 * - `timeout`, `stopped`, `lease_lost` (and `closing`): why `context.signal` aborted.
 * - `internal`: your own function, such as `eventKey`, threw.
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
 * The only error class of this package. The message never contains a secret, a payload value or a query string.
 *
 * `instanceof` also works across copies of the package, such as its CommonJS and ES module builds.
 */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** What went wrong, to branch on. */
  readonly code: WebhookErrorCode

  constructor(code: WebhookErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

recogniseAnyCopy(WebhookError, 'WebhookError')

/**
 * Makes `instanceof` work across copies of a class: CommonJS next to ES modules, or a second copy in a bundle.
 * Subclasses keep the built-in check.
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
        // A thrown value can be a revoked proxy.
        return false
      }
    },
  })
}
