import { WebhookError } from '../errors.ts'
import type { Handshakes } from '../events/challenge.ts'
import { decodeText } from '../events/json.ts'
import type { LookupOutcome } from '../events/lookup.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import {
  isList,
  type ParsedDelivery,
  type Parsing,
  parseDelivery,
  parsePayload,
  type Vouched,
} from '../events/parse.ts'
import type { AnySender } from '../events/sender.ts'
import type { HandlerRegistry } from '../handlers/registry.ts'
import { Closing } from '../inbox/closing.ts'
import type { AcceptedEvent, AcceptOptions, CloseOptions, CloseReport, Inbox } from '../inbox/inbox.ts'
import { type Logger, throttled } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { maxWaitMs, within } from '../internal/timers.ts'
import type { Verifier } from '../verify/verifier.ts'
import { acknowledged, type RejectionError, rejection, toRejectionError } from './acknowledgement.ts'
import { Conflicts } from './conflicts.ts'
import type { Acknowledgement, Delivery, Success } from './delivery.ts'
import { acceptLookup, checkLookup } from './look-ups.ts'
import type { LookupOptions } from './options.ts'
import type { Reporter } from './reporter.ts'
import type { SenderChanges } from './sender-changes.ts'
import {
  accept,
  acceptAll,
  guard,
  handleNow,
  isRejection,
  keepUnreadable,
  readBody,
  type Verified,
  type VerifiedDelivery,
  verifyDelivery,
  waitUntilHandled,
} from './steps.ts'
import type { DeliverySpan } from './telemetry.ts'

/** What a delivery meets on its way to the inbox. */
export interface DeliveryPathOptions {
  /** Decides whether a delivery comes from the sender. */
  readonly verifier: Verifier
  /** Makes events of bodies. */
  readonly parsing: Parsing
  /** Warns of changes. */
  readonly senderChanges: SenderChanges
  /** Knows which events have a handler. */
  readonly registry: HandlerRegistry
  /** Stores the events. */
  readonly inbox: Inbox
  /** When a delivery is acknowledged: after its event is stored, or after it is handled. */
  readonly ack: 'accepted' | 'handled'
  readonly maxBodyBytes: number
  /** Time limit of the body, of an asynchronous verifier, and of a handshake. */
  readonly bodyTimeoutMs: number
  /** Time limit of the handlers with `ack: 'handled'`. */
  readonly ackTimeoutMs: number
  /** Why this platform loses the event of a delivery without `waitUntil`; `undefined` if it doesn't. */
  readonly lossWithoutWait: string | undefined
  /** Is told of every delivery. */
  readonly reporter: Reporter
  readonly logger: Logger
}

type ReadDelivery = Omit<VerifiedDelivery, 'trace'>

/** The path of deliveries and look-ups into the inbox. Counts those in flight, so that `close` can wait for them. */
export class DeliveryPath {
  readonly #options: DeliveryPathOptions
  readonly #handshakes: Handshakes | undefined
  readonly #conflicts: Conflicts
  readonly #closing = new Closing('the receiver is closing', (timeoutMs) => this.#close(timeoutMs))
  #inFlight = 0
  #allEnded = () => {}

  constructor(options: DeliveryPathOptions) {
    const { parsing, inbox, reporter, logger } = options
    this.#options = options
    this.#handshakes = openHandshakes(options)
    this.#conflicts = new Conflicts(inbox, parsing, (report) => reporter.conflict(report), logger)
  }

  readonly receive = (delivery: Delivery): Promise<Acknowledgement> => {
    const { reporter } = this.#options
    const span = reporter.startDelivery(delivery)
    return span ? reporter.within(span, () => this.#receive(delivery, span)) : this.#receive(delivery)
  }

  /** Awaits only promises: a delivery whose body is at hand is accepted within this call, and costs no microtask. */
  async #receive(delivery: Delivery, span?: DeliverySpan): Promise<Acknowledgement> {
    const startedAt = performance.now()
    const handshakes = this.#handshakes
    let event: MediaEvent | undefined
    this.#inFlight++
    try {
      this.#closing.checkOpen()
      const answered = handshakes && (await handshakes.answerRequest(delivery))
      if (answered !== undefined) return this.#report(answered, startedAt, event, span)
      this.#guard(delivery)
      // The body of a forged delivery is read only if the verifier needs it.
      const early = this.#options.verifier.needsBytes ? readBody(delivery, this.#options) : undefined
      const earlyBody = isPromise(early) ? await early : early
      const verifying = this.#verify(delivery, earlyBody)
      const vouched = isPromise(verifying) ? await verifying : verifying
      if (isRejection(vouched)) return this.#reject(vouched, startedAt, event, span)
      const reading = earlyBody ?? readBody(delivery, this.#options)
      const body = isPromise(reading) ? await reading : reading
      this.#options.senderChanges.checkSignature(delivery)
      const answer = handshakes && (await handshakes.answerPayload(delivery, body))
      if (answer !== undefined) return this.#report(answer, startedAt, event, span)
      const parsing = this.#parse(delivery, body, vouched, span)
      const parsed = isPromise(parsing) ? await parsing : parsing
      if (isList(parsed)) return this.#report(await this.#acceptList(parsed, delivery, span), startedAt, event, span)
      event = parsed
      const accepting = this.#unhandled(event) ?? this.#putInInbox(event, delivery.waitUntil, span)
      const outcome = isPromise(accepting) ? await accepting : accepting
      this.#compare(event, outcome)
      return this.#report(acknowledged[outcome], startedAt, event, span)
    } catch (error) {
      return this.#reject(toRejectionError(error), startedAt, event, span)
    } finally {
      this.#ended()
    }
  }

  #guard(delivery: Delivery): void {
    const { maxBodyBytes, lossWithoutWait, parsing } = this.#options
    guard(delivery, parsing.sender.body, maxBodyBytes)
    if (lossWithoutWait !== undefined && delivery.waitUntil === undefined)
      throw new WebhookError('internal', 'the receiver failed', { cause: `${lossWithoutWait}, or pass waitUntil` })
  }

  #verify(delivery: Delivery, body: Uint8Array | undefined): MaybePromise<Verified | RejectionError> {
    const { verifier, bodyTimeoutMs, senderChanges } = this.#options
    return verifyDelivery(verifier, senderChanges.watch(delivery), bodyTimeoutMs, body)
  }

  #parse(delivery: Delivery, body: Uint8Array, vouched: Vouched, span?: DeliverySpan): MaybePromise<ParsedDelivery> {
    try {
      const parsed = parseDelivery(this.#options.parsing, body, delivery, vouched)
      if (!isPromise(parsed)) return parsed
      return parsed.catch((thrown) => this.#keepMalformed(thrown, { delivery, body, vouched }, span))
    } catch (thrown) {
      return this.#keepMalformed(thrown, { delivery, body, vouched }, span)
    }
  }

  /** Has the inbox keep a malformed delivery, since it was verified. Throws the error in any case. */
  async #keepMalformed(thrown: unknown, verified: ReadDelivery, span?: DeliverySpan): Promise<never> {
    const { inbox, parsing, logger, reporter } = this.#options
    const error = toRejectionError(thrown)
    if (error.code === 'malformed')
      await keepUnreadable(inbox, parsing, error, { ...verified, trace: reporter.readTrace(span) }).catch((err) =>
        throttled(logger).error({ err }, 'the inbox could not keep an unreadable delivery'),
      )
    throw error
  }

  /** Why nobody handles an event; `undefined` if somebody does. */
  #unhandled(event: MediaEvent): 'test' | 'ignored' | undefined {
    const { registry, senderChanges } = this.#options
    senderChanges.check(event)
    if (registry.handles(event.type, event.test)) return undefined
    if (registry.handles(event.type)) return 'test'
    senderChanges.checkIgnored(event)
    return 'ignored'
  }

  #putInInbox(event: MediaEvent, waitUntil: AcceptOptions['waitUntil'], span?: DeliverySpan) {
    const { inbox, ack, ackTimeoutMs } = this.#options
    const accepted = this.#toAccepted(event, span)
    if (ack === 'accepted') return accept(inbox, accepted, this.#keepAlive(waitUntil))
    const handling = handleNow(inbox, accepted)
    this.#conflicts.watch(event, handling)
    return waitUntilHandled(handling, ackTimeoutMs, this.#keepAlive(waitUntil))
  }

  #toAccepted(event: MediaEvent, span?: DeliverySpan): AcceptedEvent {
    return { event, receivedAt: new Date(), trace: this.#options.reporter.readTrace(span) }
  }

  #keepAlive(waitUntil: AcceptOptions['waitUntil']): AcceptOptions['waitUntil'] {
    const { reporter } = this.#options
    return waitUntil && ((promise) => reporter.guarded('waitUntil', () => waitUntil(promise)))
  }

  #acceptList(events: readonly MediaEvent[], { waitUntil }: Delivery, span?: DeliverySpan) {
    const { inbox, ack, parsing } = this.#options
    const toAccepted = (event: MediaEvent) => this.#toAccepted(event, span)
    const accept = (event: MediaEvent) => this.#putInInbox(event, waitUntil, span)
    return (parsing.sender as Required<AnySender>).acceptList(events, {
      unhandled: (event) => this.#unhandled(event),
      accept,
      acceptAll: (all) =>
        ack === 'handled'
          ? Promise.all(all.map(accept))
          : acceptAll(inbox, all.map(toAccepted), this.#keepAlive(waitUntil)),
      accepted: (event, outcome) => this.#compare(event, outcome),
    })
  }

  /** Remembers what was accepted, and compares duplicates with it. */
  #compare(event: MediaEvent, outcome: Success): void {
    if (outcome === 'accepted') this.#conflicts.accepted.remember(event)
    else if (outcome === 'duplicate') this.#conflicts.duplicate(event)
  }

  #report(answer: Acknowledgement, startedAt: number, event?: MediaEvent, span?: DeliverySpan): Acknowledgement {
    this.#options.reporter.delivery(answer, startedAt, event, undefined, span)
    return answer
  }

  #reject(error: RejectionError, startedAt: number, event?: MediaEvent, span?: DeliverySpan): Acknowledgement {
    // The sender need not know where our database is, or how it fails.
    const isOutage = error.code === 'unavailable'
    const acknowledgement = rejection(error.code, isOutage ? 'the delivery cannot be accepted now' : error.message)
    this.#options.reporter.delivery(acknowledgement, startedAt, event, error, span)
    return acknowledgement
  }

  #ended(): void {
    if (--this.#inFlight === 0) this.#allEnded()
  }

  /** Accepts a look-up as if it were a verified delivery. Logged, but not reported to the `delivery` hook. */
  async acceptLookup(found: object, options: LookupOptions = {}): Promise<LookupOutcome> {
    const { logger } = this.#options
    checkLookup(options, this.#options)
    this.#inFlight++
    try {
      this.#closing.checkOpen()
      const put = (event: MediaEvent, waitUntil: AcceptOptions['waitUntil']) => this.#putInInbox(event, waitUntil)
      const { event, outcome } = await acceptLookup(found, options, this.#options, put)
      const { key, type, mediaId } = event
      this.#compare(event, outcome)
      logger[outcome === 'accepted' ? 'info' : 'debug']({ outcome, key, type, mediaId }, `look-up ${outcome}`)
      return outcome
    } catch (thrown) {
      // What the client throws is the application's.
      throw options.client === undefined ? toRejectionError(thrown) : thrown
    } finally {
      this.#ended()
    }
  }

  async ready(): Promise<void> {
    this.#closing.checkOpen()
    await this.#options.inbox.ready?.()
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Waits for deliveries in flight, at most half of `timeoutMs`, then closes the inbox in the time left. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    const { inbox, reporter } = this.#options
    const startedAt = performance.now()
    reporter.closing()
    const idle = new Promise<void>((resolve) => {
      this.#allEnded = resolve
    })
    inbox.retryNow?.()
    if (this.#inFlight > 0) await within(Math.min(timeoutMs / 2, maxWaitMs), idle, () => {})
    return inbox.close({ timeoutMs: Math.max(0, timeoutMs - (performance.now() - startedAt)) })
  }
}

/** A sender's handshakes, verified if the verifier needs no body. */
function openHandshakes({ parsing, verifier, bodyTimeoutMs }: DeliveryPathOptions): Handshakes | undefined {
  return parsing.sender.handshakes?.({
    async verify(delivery) {
      const vouched = verifier.needsBytes ? undefined : await verifyDelivery(verifier, delivery, bodyTimeoutMs)
      if (vouched !== undefined && isRejection(vouched)) throw vouched
    },
    parse: (body, headers) => parsePayload(parsing, decodeText(body), headers),
    timeoutMs: bodyTimeoutMs,
  })
}
