import { WebhookError } from '../errors.ts'
import type { BodyFormat } from '../events/body.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { keepInput, type Parsing, type Vouched } from '../events/parse.ts'
import type { Acceptance, AcceptedEvent, AcceptOptions, ImmediateResult, Inbox } from '../inbox/inbox.ts'
import type { TraceCarrier } from '../inbox/reading.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { within } from '../internal/timers.ts'
import { encoder } from '../internal/utf8.ts'
import { withoutStack } from '../internal/without-stack.ts'
import type { Verification, Verifier } from '../verify/verifier.ts'
import type { RejectionError } from './acknowledgement.ts'
import type { Delivery, ParsedBody, RejectionCode } from './delivery.ts'

/** Stackless, because anyone can cause these errors at any rate. */
const rejected = (code: RejectionCode, message: string, options?: ErrorOptions): RejectionError =>
  withoutStack(() => new WebhookError(code, message, options) as RejectionError)

/**
 * Rejects a request by its method and headers, before its body is read.
 * @throws WebhookError `method_not_allowed`, `unsupported_media_type` or `too_large`
 */
export function guard({ method, headers, body }: Delivery, format: BodyFormat, maxBodyBytes: number): void {
  if (method !== 'POST') throw rejected('method_not_allowed', 'method must be POST')
  const type = headers.get('content-type')
  if (type && !format.takes(type)) {
    throw rejected('unsupported_media_type', `content-type must be ${format.contentTypes}`)
  }
  // A body parser has already decoded the body and applied its own size limit.
  if (typeof body !== 'function') return
  const encoding = headers.get('content-encoding')?.toLowerCase()
  if (encoding && encoding !== 'identity' && !(encoding === 'gzip' && format.decompress)) {
    throw rejected(
      'unsupported_media_type',
      `content-encoding must be ${format.decompress ? 'gzip or ' : ''}identity: send the body uncompressed`,
    )
  }
  if (Number(headers.get('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes)
}

interface ReadOptions {
  readonly verifier: Verifier
  readonly parsing: Pick<Parsing, 'sender'>
  readonly maxBodyBytes: number
  readonly bodyTimeoutMs: number
}

/**
 * Reads the body. The value that another parser left is written as JSON: the application owns it and may change it.
 * @throws WebhookError `too_large`, `incomplete`, `malformed` or `body_consumed`
 */
export function readBody({ body, headers }: Delivery, options: ReadOptions): MaybePromise<Uint8Array> {
  const { maxBodyBytes, bodyTimeoutMs, parsing } = options
  const { decompress } = parsing.sender.body
  const read = typeof body === 'function' ? body(maxBodyBytes) : body
  if (!isPromise(read) && decompress === undefined) return requireBytes(read, options)
  const sent = Promise.resolve(read).then((result) => requireBytes(result, options))
  const bytes = decompress ? sent.then((each) => decompress(each, headers, maxBodyBytes)) : sent
  return within(bodyTimeoutMs, bytes, bodyLate)
}

function bodyLate(): never {
  throw rejected('incomplete', 'the body did not arrive in time')
}

function requireBytes(read: Uint8Array | ParsedBody | 'too_large' | 'incomplete', options: ReadOptions): Uint8Array {
  const { maxBodyBytes } = options
  if (read === 'incomplete') throw rejected('incomplete', 'the body was cut off before its end')
  if (read === 'too_large') throw tooLarge(maxBodyBytes)
  // A parser may have decompressed it, so `content-length` says nothing.
  const bytes = ArrayBuffer.isView(read) ? read : written(read, options)
  if (bytes.byteLength > maxBodyBytes) throw tooLarge(maxBodyBytes)
  return bytes
}

function written(body: ParsedBody, { verifier, parsing }: ReadOptions): Uint8Array {
  if (body.parsed === undefined) throw bodyConsumed(body, 'left no body')
  if (verifier.needsBytes) throw bodyConsumed(body, `${verifier.name} needs the exact bytes`)
  try {
    return encoder.encode(parsing.sender.body.write(body.parsed))
  } catch (error) {
    if (error instanceof WebhookError) throw error
    // Not JSON. Parsing rejects it.
    return noBytes
  }
}

const tooLarge = (maxBodyBytes: number): WebhookError =>
  rejected('too_large', `the body is larger than ${maxBodyBytes} bytes`)

const bodyConsumed = ({ fix = 'mount the receiver before it' }: ParsedBody, need: string): WebhookError =>
  new WebhookError('body_consumed', 'a body parser ran before the receiver', {
    cause: `a body parser ran before the receiver, and ${need}: ${fix}`,
  })

const noBytes = new Uint8Array()

/** Recognised by `verified` alone, so an error can never pass for it. */
export type Verified = Extract<Verification, { readonly verified: true }>

/**
 * Calls the verifier. The sender gets the same message for every failure; the reason is the error's `cause`.
 * @returns the verification, or a WebhookError `unauthorized` or `unavailable`: returning is cheaper than throwing
 * @throws WebhookError `unavailable` if the verifier takes too long
 */
export function verifyDelivery(
  verifier: Verifier,
  { url, headers }: Pick<Delivery, 'url' | 'headers'>,
  timeoutMs: number,
  body: Uint8Array = noBytes,
): MaybePromise<Verified | RejectionError> {
  let verification: MaybePromise<Verification>
  try {
    verification = verifier.verify({ url, headers, body })
  } catch (error) {
    return unauthorized(error)
  }
  if (!isPromise(verification)) return vouchedBy(verification)
  // `Promise.resolve`, because a thenable's `then` may return anything, and the delivery would pass.
  const answer = Promise.resolve(verification).then(vouchedBy, unauthorized)
  return within(timeoutMs, answer, verifierLate)
}

function verifierLate(): never {
  throw new WebhookError('unavailable', 'the verifier did not answer in time')
}

export const isRejection = (decision: Verified | RejectionError): decision is RejectionError =>
  !('verified' in decision)

function vouchedBy(verification: Verification): Verified | RejectionError {
  if (verification?.verified === true) {
    const { principal, eventId } = verification
    if (!isTextOrAbsent(principal)) return unauthorized('the verifier returned a principal that is not a string')
    if (!isTextOrAbsent(eventId ?? undefined))
      return unauthorized('the verifier returned an eventId that is not a string')
    return verification
  }
  if (verification?.unavailable !== true)
    return unauthorized(verification?.reason ?? 'the verifier returned neither { verified: true } nor a reason')
  const { error, reason } = verification
  return rejected('unavailable', 'the verifier cannot decide now', { cause: error ?? reason })
}

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string'

const unauthorized = (cause: unknown): RejectionError =>
  rejected('unauthorized', 'the delivery could not be verified', { cause })

/** A delivery that was verified and read. */
export interface VerifiedDelivery {
  readonly delivery: Delivery
  readonly body: Uint8Array
  readonly vouched: Vouched
  readonly trace: TraceCarrier | undefined
}

/** Stores a verified delivery that could not be parsed. No-op if the inbox keeps none. */
export async function keepUnreadable(
  inbox: Inbox,
  parsing: Parsing,
  { message, cause }: Error,
  { delivery, body, vouched, trace }: VerifiedDelivery,
): Promise<void> {
  const detail = cause instanceof Error ? cause.message : cause
  const { keySource } = parsing
  await inbox.keepUnreadable?.({
    reason: detail === undefined ? message : `${message} (${detail})`,
    receivedAt: new Date(),
    eventId: (typeof keySource === 'object' && delivery.headers.get(keySource.header)) || vouched.eventId,
    principal: vouched.principal || undefined,
    ...keepInput(parsing, delivery),
    ...(trace && { trace }),
    body,
  })
}

/** @throws WebhookError `overloaded`, `in_progress`, `closing` or `unavailable`; the event was not stored */
export function accept(
  inbox: Inbox,
  accepted: AcceptedEvent,
  waitUntil: AcceptOptions['waitUntil'],
): MaybePromise<'accepted' | 'duplicate'> {
  try {
    const acceptance = inbox.accept(accepted, waitUntil && { waitUntil })
    return isPromise(acceptance) ? acceptance.then(checkRoom, unavailable) : checkRoom(acceptance)
  } catch (error) {
    return unavailable(error)
  }
}

/**
 * Accepts all of several events, or none. `undefined` if the inbox has no step for that.
 * @throws WebhookError as {@link accept}
 */
export const acceptAll = (
  inbox: Inbox,
  accepted: readonly AcceptedEvent[],
  waitUntil: AcceptOptions['waitUntil'],
): Promise<readonly ('accepted' | 'duplicate')[]> | undefined =>
  inbox.acceptAll?.(accepted, waitUntil && { waitUntil }).then((all) => all.map(checkRoom), unavailable)

function checkRoom(acceptance: Acceptance): 'accepted' | 'duplicate' {
  if (acceptance === 'overloaded') throw overloaded()
  return acceptance
}

/**
 * Stores the event in a transaction of the application.
 * @throws WebhookError `invalid_option`, `overloaded` or `closing`; otherwise what the client throws
 */
export function acceptIn(inbox: Inbox, client: object, event: MediaEvent): MaybePromise<'accepted' | 'duplicate'> {
  if (inbox.acceptIn === undefined)
    throw new WebhookError('invalid_option', 'accept: client needs postgresInbox, pgliteInbox or sqliteInbox')
  const acceptance = inbox.acceptIn(client, { event, receivedAt: new Date() })
  return isPromise(acceptance) ? acceptance.then(checkRoom) : checkRoom(acceptance)
}

/**
 * Accepts the event and handles it in this call.
 * @throws WebhookError `unavailable`; the event was not stored
 */
export async function handleNow(inbox: Inbox, accepted: AcceptedEvent): Promise<ImmediateResult> {
  try {
    return await (inbox as Required<Inbox>).handleNow(accepted)
  } catch (error) {
    return unavailable(error)
  }
}

/**
 * Waits up to `timeoutMs` for the result of {@link handleNow}. After that the handlers continue.
 * @throws WebhookError `handler_failed`, `in_progress`, `overloaded`, `closing` or `unavailable`
 */
export async function waitUntilHandled(
  handling: Promise<ImmediateResult>,
  timeoutMs: number,
  waitUntil: AcceptOptions['waitUntil'],
): Promise<'handled' | 'duplicate'> {
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
