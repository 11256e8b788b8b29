import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { Verification, Verifier } from '../verify/verifier.ts'

const noBytes = new Uint8Array()

/**
 * Lets the verifier decide and gives the event id that it vouches for, if any. The sender is told the same, whatever
 * the reason; the reason is the error's cause.
 * @throws WebhookError `unauthorized` or `body_consumed`
 */
export function verifyDelivery(
  verifier: Verifier,
  { url, headers }: Delivery,
  body: Uint8Array | ParsedBody,
): MaybePromise<string | undefined> {
  const isBytes = body instanceof Uint8Array
  if (!isBytes && (verifier.needsBytes || body.parsed === undefined)) throw bodyConsumed(verifier, body)
  let verification: MaybePromise<Verification>
  try {
    verification = verifier.verify({ url, headers, body: isBytes ? body : noBytes })
  } catch (error) {
    throw unauthorized(error)
  }
  if (!isPromise(verification)) return eventIdOf(verification)
  return verification.then(eventIdOf, (error) => {
    throw unauthorized(error)
  })
}

function eventIdOf(verification: Verification): string | undefined {
  if (verification?.verified === true) return verification.eventId
  throw unauthorized(verification?.reason)
}

const unauthorized = (cause: unknown): WebhookError =>
  new WebhookError('unauthorized', 'the delivery could not be verified', { cause })

function bodyConsumed({ name }: Verifier, body: ParsedBody): WebhookError {
  const need = body.parsed === undefined ? 'nothing was left of it' : `${name} needs its exact bytes`
  return new WebhookError('body_consumed', 'the receiver is mounted behind a parser that consumed the body', {
    cause:
      `the body was consumed before the receiver could read it, and ${need}: mount the receiver before the body ` +
      "parser, or give its path express.raw({ type: '*/*' })",
  })
}
