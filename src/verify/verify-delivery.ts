import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { SignedDelivery, Verification, Verifier } from './verifier.ts'

const noBytes = new Uint8Array()

/**
 * Lets the verifier decide and gives the event id that it vouches for, if any. The sender is told the same, whatever
 * the reason; the reason is the error's cause.
 * @throws WebhookError `unauthorized` or `body_consumed`
 */
export async function verifyDelivery(
  verifier: Verifier,
  { url, headers }: Delivery,
  body: Uint8Array | ParsedBody,
): Promise<string | undefined> {
  const isBytes = body instanceof Uint8Array
  if (!isBytes && (verifier.needsBytes || body.parsed === undefined)) {
    throw new WebhookError('body_consumed', 'the receiver is mounted behind a parser that consumed the body', {
      cause:
        `the body was consumed before the receiver could read it, and ${verifier.name} needs its exact bytes: mount the ` +
        "receiver before the body parser, or give its path express.raw({ type: '*/*' })",
    })
  }
  const verification = await decide(verifier, { url, headers, body: isBytes ? body : noBytes })
  if (verification.verified === true) return verification.eventId
  throw unauthorized(verification.reason)
}

async function decide(verifier: Verifier, delivery: SignedDelivery): Promise<Verification> {
  try {
    return await verifier.verify(delivery)
  } catch (error) {
    throw unauthorized(error)
  }
}

const unauthorized = (cause: unknown): WebhookError =>
  new WebhookError('unauthorized', 'the delivery could not be verified', { cause })
