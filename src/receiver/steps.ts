import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { Parsing, Vouched } from '../events/parse.ts'
import type { Acceptance, AcceptedEvent, AcceptOptions, Inbox } from '../inbox/inbox.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { within } from '../internal/timers.ts'
import { encoder } from '../internal/utf8.ts'
import { withoutStack } from '../internal/without-stack.ts'
import type { Verification, Verifier } from '../verify/verifier.ts'
import type { RejectionCode, RejectionError } from './acknowledgement.ts'

// The steps of a delivery's path, in the order in which the receiver takes them.

/** Makes the error of a delivery that anyone can send. */
const rejected = (code: RejectionCode, message: string, options?: ErrorOptions): RejectionError =>
  withoutStack(() => new WebhookError(code, message, options) as RejectionError)

// `application/json` and `application/…+json`, with or without parameters such as a charset.
const jsonType = /^application\/(?:json|[\w!#$&^.-]+\+json)[ \t]*(?:;|$)/i

/**
 * Rejects a request that cannot be a delivery, before its body is read.
 * @throws WebhookError `method_not_allowed`, `unsupported_media_type` or `too_large`
 */
export function guard({ method, headers, body }: Delivery, maxBodyBytes: number): void {
  if (method !== 'POST') throw rejected('method_not_allowed', 'the method has to be POST')
  const type = headers.get('content-type')
  if (type && !jsonType.test(type)) {
    throw rejected('unsupported_media_type', 'the content type has to be application/json')
  }
  // A parser that consumed the body has also decoded it, and has applied its own limit to the bytes on the wire.
  if (typeof body !== 'function') return
  const encoding = headers.get('content-encoding')
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw rejected('unsupported_media_type', 'the body has to be sent without a content encoding')
  }
  if (Number(headers.get('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes)
}

/**
 * Reads the body: its bytes, or the value that another parser made of it.
 * @param timeoutMs limits the time that the body may take to arrive
 * @throws WebhookError `too_large`, `incomplete` or `body_consumed`
 */
export function readBody(
  { body }: Delivery,
  maxBodyBytes: number,
  timeoutMs: number,
): MaybePromise<Uint8Array | ParsedBody> {
  const read = typeof body === 'function' ? body(maxBodyBytes) : body
  if (!isPromise(read)) return checkBody(read, maxBodyBytes)
  return within(timeoutMs, read, bodyLate).then((result) => checkBody(result, maxBodyBytes))
}

function bodyLate(): never {
  throw new WebhookError('incomplete', 'the body did not arrive in time')
}

function checkBody(
  read: Uint8Array | ParsedBody | 'too_large' | 'incomplete',
  maxBodyBytes: number,
): Uint8Array | ParsedBody {
  if (read === 'incomplete') throw new WebhookError('incomplete', 'the body was cut off before its end')
  if (read === 'too_large') throw tooLarge(maxBodyBytes)
  if (!ArrayBuffer.isView(read)) {
    if (read.parsed === undefined) throw bodyConsumed(read, 'left no body')
    if (sizeOf(read.parsed) > maxBodyBytes) throw tooLarge(maxBodyBytes)
  } else if (read.byteLength > maxBodyBytes) throw tooLarge(maxBodyBytes)
  return read
}

/** Returns the size of a parsed value as JSON, in bytes. Its parser may have inflated it, up to a limit of its own. */
function sizeOf(parsed: unknown): number {
  try {
    return encoder.encode(JSON.stringify(parsed)).byteLength
  } catch {
    // Too deep, which parsing rejects, or a value of a parser that makes more than JSON has.
    return 0
  }
}

const tooLarge = (maxBodyBytes: number): WebhookError =>
  rejected('too_large', `the body is larger than ${maxBodyBytes} bytes`)

const bodyConsumed = ({ fix = 'mount the receiver before it' }: ParsedBody, need: string): WebhookError =>
  new WebhookError('body_consumed', 'a body parser ran before the receiver', {
    cause: `a body parser ran before the receiver, and ${need}: ${fix}`,
  })

const noBytes = new Uint8Array()

/** The decision that a delivery comes from the sender. Only it has `verified`: an error must never pass for it. */
type Verified = Extract<Verification, { readonly verified: true }>

/**
 * Asks the verifier, and returns the event id and the principal it vouches for, if any. The sender gets the same message
 * for every delivery that it does not verify; the reason is the error's cause. That error is returned: anyone can send
 * forged deliveries, and throwing it would take 0.6 µs more.
 * @param timeoutMs limits the time that the verifier may take
 * @param body omitted while it has not been read
 * @returns or a WebhookError `unauthorized` or `unavailable`
 * @throws WebhookError `unavailable` if the verifier takes too long, or `body_consumed`
 */
export function verifyDelivery(
  verifier: Verifier,
  { url, headers }: Pick<Delivery, 'url' | 'headers'>,
  timeoutMs: number,
  body: Uint8Array | ParsedBody = noBytes,
): MaybePromise<Verified | RejectionError> {
  if (!ArrayBuffer.isView(body)) throw bodyConsumed(body, `${verifier.name} needs the exact bytes`)
  let verification: MaybePromise<Verification>
  try {
    verification = verifier.verify({ url, headers, body })
  } catch (error) {
    return unauthorized(error)
  }
  if (!isPromise(verification)) return vouchedBy(verification)
  // A thenable's own `then` need not return a promise, and the delivery would pass.
  const answer = Promise.resolve(verification).then(vouchedBy, unauthorized)
  return within(timeoutMs, answer, verifierLate)
}

function verifierLate(): never {
  throw new WebhookError('unavailable', 'the verifier did not answer in time')
}

/** Anything that does not say `verified` is a rejection. */
export const isRejection = (decision: Verified | RejectionError): decision is RejectionError =>
  !('verified' in decision)

function vouchedBy(verification: Verification): Verified | RejectionError {
  if (verification?.verified === true) {
    const { principal } = verification
    if (principal === undefined || typeof principal === 'string') return verification
    return unauthorized('the principal that the verifier names is not a string')
  }
  if (verification?.unavailable !== true) return unauthorized(verification?.reason)
  const { error, reason } = verification
  return rejected('unavailable', 'the verifier cannot decide now', { cause: error ?? reason })
}

const unauthorized = (cause: unknown): RejectionError =>
  rejected('unauthorized', 'the delivery could not be verified', { cause })

/**
 * Gives the inbox a delivery that was verified but could not be parsed, if the inbox keeps such deliveries.
 * @param error the reason why it could not be parsed
 */
export async function keepUnreadable(
  inbox: Inbox,
  { sender, keySource }: Parsing,
  { message, cause }: Error,
  { headers }: Delivery,
  body: Uint8Array | ParsedBody,
  vouched: Vouched | undefined,
): Promise<void> {
  const detail = cause instanceof Error ? cause.message : cause
  const kept = Array.from(sender.headers, (name) => [name, headers.get(name)]).filter(([, value]) => value !== null)
  await inbox.keepUnreadable?.({
    reason: detail === undefined ? message : `${message} (${detail})`,
    receivedAt: new Date(),
    eventId: (typeof keySource === 'object' && headers.get(keySource.header)) || vouched?.eventId,
    principal: vouched?.principal || undefined,
    ...(kept.length > 0 && { headers: Object.fromEntries(kept) }),
    body: ArrayBuffer.isView(body) ? body : encoder.encode(JSON.stringify(body.parsed)),
  })
}

/**
 * Stores the event in the inbox.
 * @throws WebhookError `overloaded`, `in_progress`, `closing` or `unavailable` when the event was not stored
 */
export function accept(
  inbox: Inbox,
  accepted: AcceptedEvent,
  waitUntil: AcceptOptions['waitUntil'],
): MaybePromise<'accepted' | 'duplicate'> {
  try {
    const acceptance = inbox.accept(accepted, { waitUntil })
    return isPromise(acceptance) ? acceptance.then(checkRoom, unavailable) : checkRoom(acceptance)
  } catch (error) {
    return unavailable(error)
  }
}

function checkRoom(acceptance: Acceptance): 'accepted' | 'duplicate' {
  if (acceptance === 'overloaded') throw overloaded()
  return acceptance
}

/**
 * Makes the inbox handle the event immediately, and waits up to `timeoutMs` for the result.
 * @throws WebhookError `handler_failed`, `in_progress`, `overloaded`, `closing` or `unavailable` when it was not
 * handled
 */
export async function acceptAndHandle(
  inbox: Required<Inbox>,
  accepted: AcceptedEvent,
  timeoutMs: number,
  waitUntil: AcceptOptions['waitUntil'],
): Promise<'handled' | 'duplicate'> {
  const handling = inbox.handleNow(accepted).catch(unavailable)
  waitUntil?.(handling.catch(() => {}))
  const result = await within(timeoutMs, handling, () => 'in-progress' as const)
  if (result === 'overloaded') throw overloaded()
  if (result === 'closing') throw new WebhookError('closing', 'the receiver is closing')
  if (result === 'failed') throw new WebhookError('handler_failed', 'a handler failed')
  if (result === 'in-progress') throw new WebhookError('in_progress', 'the event is being handled')
  return result
}

function unavailable(error: unknown): never {
  if (error instanceof WebhookError) throw error
  throw new WebhookError('unavailable', 'the inbox cannot be reached', { cause: error })
}

const overloaded = (): WebhookError => new WebhookError('overloaded', 'too many events are waiting')
