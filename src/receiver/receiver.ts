import type { Delivery } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { KeyInput } from '../events/kept-input.ts'
import { type LookupOutcome, parseLookup } from '../events/lookup.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { mediaService } from '../events/media-service/sender.ts'
import { type Parsing, parseEvent, type Vouched } from '../events/parse.ts'
import type { AnySender } from '../events/sender.ts'
import type { MediaService } from '../events/types.ts'
import { createHandle } from '../handlers/attempt.ts'
import type { AcceptLookup } from '../handlers/expectations.ts'
import type { Handler } from '../handlers/handler.ts'
import { HandlerRegistry } from '../handlers/registry.ts'
import { retrySchedule } from '../handlers/retry.ts'
import { Closing } from '../inbox/closing.ts'
import type { AcceptOptions, CloseOptions, CloseReport } from '../inbox/inbox.ts'
import { memoryInbox } from '../inbox/memory.ts'
import { aFunction, checkOptions } from '../internal/check-options.ts'
import { consoleLogger, safeLogger, throttled } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { maxWaitMs, within } from '../internal/timers.ts'
import {
  type Acknowledgement,
  acknowledged,
  type RejectionError,
  rejection,
  type Success,
  toRejectionError,
} from './acknowledgement.ts'
import { Conflicts } from './conflicts.ts'
import { checkReceiverOptions, type Receiver, type ReceiverOptions } from './options.ts'
import { checkPlatform, whyNotExpect } from './platform.ts'
import { Reporter } from './reporter.ts'
import { SenderChanges } from './sender-changes.ts'
import {
  accept,
  acceptAndHandle,
  bytesOf,
  guard,
  isRejection,
  keepUnreadable,
  readBody,
  verifyDelivery,
} from './steps.ts'
import type { DeliverySpan } from './telemetry.ts'

/**
 * Creates a receiver and opens its inbox.
 *
 * ```ts
 * const receiver = createReceiver({ verify: urlToken({ secret: process.env.WEBHOOK_TOKEN! }) })
 * receiver.on('encoding.finished', (event) => publish(event.mediaId, event.qualities))
 * ```
 * @throws WebhookError `invalid_option`, or `unavailable` when the inbox cannot be opened
 */
export function createReceiver<Additions = unknown, Of extends AnySender = MediaService>(
  options: ReceiverOptions<Additions, Of>,
): Receiver<Additions, Of> {
  const setup = setUp(options)
  const { registry, inbox, sender, ack, order, logger, reporter, definition } = setup
  const receiver = withRegistration(registry, whyNotExpect(definition, ack, options.platform), {
    inbox,
    sender: sender as never,
    setup: { ack, order, inbox: definition, logger },
    ...deliveryPath(setup),
    observe: (hooks) => reporter.observe(hooks),
    async handle(message, options) {
      if (inbox.handleMessage !== undefined) return inbox.handleMessage(message, options)
      throw new WebhookError('invalid_option', 'receiver.handle needs queueInbox')
    },
    ready: async () => inbox.ready?.(),
  })
  // The registry and the parser enforce these types at run time.
  return receiver as unknown as Receiver<Additions, Of>
}

type Setup = ReturnType<typeof setUp>

function setUp<Additions, Of extends AnySender>(options: ReceiverOptions<Additions, Of>) {
  checkReceiverOptions(options)
  const { verify: verifier, inbox: definition = memoryInbox(), telemetry } = options
  const { ack = 'accepted', order = 'loose', handlerTimeoutMs = 30_000 } = options
  const { maxBodyBytes = 65_536, bodyTimeoutMs = 10_000, ackTimeoutMs = 2_500 } = options
  const { retry = ack === 'handled' ? undefined : {} } = options
  const sender: AnySender = options.sender ?? mediaService
  const keyInput = new KeyInput((url) => verifier.withoutToken?.(url) ?? url)
  const parsing: Parsing = { sender, keySource: options.eventKey, keyInput }
  const logger = safeLogger(options.logger ?? consoleLogger)
  const lossWithoutWait = checkPlatform(definition, ack, logger, options.platform)
  const registry = new HandlerRegistry(sender, options.handlers, retry, definition.limits ? undefined : definition.name)
  const reporter = new Reporter(options.hooks, logger, telemetry)
  const schedule = retry === undefined ? undefined : retrySchedule(retry)
  const inbox = definition.open({
    handle: createHandle({ registry, reporter, logger, handlerTimeoutMs, retry: schedule }),
    handlersOf: (event) => registry.handlersOf(event).map(({ name }) => name),
    handlers: () => registry.handlers,
    expectations: (accepted) => registry.expectationChanges(accepted),
    parse: (unreadable) => parseEvent(parsing, unreadable.body, undefined, unreadable),
    logger,
    order,
    observe: (observer) => reporter.observe(observer),
    measured:
      telemetry &&
      ((step, durationMs, error) => reporter.guarded('telemetry', () => telemetry.measured(step, durationMs, error))),
  })
  try {
    telemetry?.opened(inbox, definition.name, sender.types)
  } catch (error) {
    // Don't leak the inbox's file or connections.
    reporter.guarded('closing the inbox', () => inbox.close({ timeoutMs: 0 }))
    throw error
  }
  const senderChanges = new SenderChanges(logger, verifier, sender)
  const conflicts = new Conflicts(inbox, parsing, (report) => reporter.conflict(report), logger)
  const settings = { verifier, definition, ack, order, maxBodyBytes, bodyTimeoutMs, ackTimeoutMs, telemetry, sender }
  return { ...settings, lossWithoutWait, parsing, logger, registry, reporter, inbox, senderChanges, conflicts }
}

/** `receive`, `accept` and `close`, which share the count of requests in flight. */
function deliveryPath(setup: Setup) {
  const { verifier, ack, maxBodyBytes, bodyTimeoutMs, ackTimeoutMs, lossWithoutWait, parsing, telemetry } = setup
  const { registry, inbox, reporter, logger, senderChanges, conflicts } = setup
  const closing = new Closing('the receiver is closing', close)
  let inFlight = 0
  let allEnded = () => {}

  function receiveTraced(delivery: Delivery): Promise<Acknowledgement> {
    const span = reporter.startDelivery(delivery)
    return span ? reporter.within(span, () => receive(delivery, span)) : receive(delivery)
  }

  /** Awaits only real promises: a needless await costs as much as parsing the JSON. */
  async function receive(delivery: Delivery, span?: DeliverySpan): Promise<Acknowledgement> {
    const startedAt = performance.now()
    let event: MediaEvent | undefined
    inFlight++
    try {
      closing.checkOpen()
      guard(delivery, maxBodyBytes)
      if (lossWithoutWait !== undefined && delivery.waitUntil === undefined)
        throw new WebhookError('internal', 'the receiver failed', { cause: `${lossWithoutWait}, or pass waitUntil` })
      // Verify before reading if the verifier needs no bytes: the body of a forged delivery is never read.
      const earlyDecision = verifier.needsBytes
        ? undefined
        : verifyDelivery(verifier, senderChanges.watch(delivery), bodyTimeoutMs)
      const decidedEarly = isPromise(earlyDecision) ? await earlyDecision : earlyDecision
      if (decidedEarly !== undefined && isRejection(decidedEarly)) return reject(decidedEarly, startedAt, event, span)
      const read = readBody(delivery, maxBodyBytes, bodyTimeoutMs)
      const given = isPromise(read) ? await read : read
      const decision = decidedEarly ?? verifyDelivery(verifier, delivery, bodyTimeoutMs, given)
      const vouched = isPromise(decision) ? await decision : decision
      if (isRejection(vouched)) return reject(vouched, startedAt, event, span)
      senderChanges.checkSignature(delivery)
      const body = bytesOf(given)
      const parsed = parse(delivery, body, vouched, span)
      event = isPromise(parsed) ? await parsed : parsed
      senderChanges.check(event)
      const accepting = handOver(event, delivery, span)
      const outcome = isPromise(accepting) ? await accepting : accepting
      if (outcome === 'accepted') conflicts.accepted.remember(event)
      else if (outcome === 'duplicate') conflicts.duplicate(event)
      reporter.delivery(acknowledged[outcome], startedAt, event, undefined, span)
      return acknowledged[outcome]
    } catch (error) {
      return reject(toRejectionError(error), startedAt, event, span)
    } finally {
      ended()
    }
  }

  /** Parses the event. The inbox keeps a malformed delivery, since it was verified. */
  function parse(
    delivery: Delivery,
    body: Uint8Array,
    vouched: Vouched,
    span?: DeliverySpan,
  ): MaybePromise<MediaEvent> {
    try {
      const parsed = parseEvent(parsing, body, delivery, vouched)
      return isPromise(parsed) ? parsed.catch((thrown) => keep(thrown, delivery, body, vouched, span)) : parsed
    } catch (thrown) {
      return keep(thrown, delivery, body, vouched, span)
    }
  }

  async function keep(
    thrown: unknown,
    delivery: Delivery,
    body: Uint8Array,
    vouched: Vouched,
    span?: DeliverySpan,
  ): Promise<never> {
    const error = toRejectionError(thrown)
    if (error.code === 'malformed')
      await keepUnreadable(inbox, parsing, error, delivery, body, vouched, traceOf(span)).catch((err) =>
        throttled(logger).error({ err }, 'the inbox could not keep an unreadable delivery'),
      )
    throw error
  }

  function handOver(event: MediaEvent, { waitUntil }: AcceptOptions, span?: DeliverySpan): MaybePromise<Success> {
    if (registry.handles(event.type, event.test)) return putInInbox(event, waitUntil, span)
    if (registry.handles(event.type)) return 'test'
    senderChanges.checkIgnored(event)
    return 'ignored'
  }

  function putInInbox(event: MediaEvent, waitUntil: AcceptOptions['waitUntil'], span?: DeliverySpan) {
    const accepted = { event, receivedAt: new Date(), trace: traceOf(span) }
    const keepAlive =
      waitUntil && ((promise: Promise<unknown>) => reporter.guarded('waitUntil', () => waitUntil(promise)))
    return ack === 'accepted'
      ? accept(inbox, accepted, keepAlive)
      : acceptAndHandle(conflicts, accepted, ackTimeoutMs, keepAlive)
  }

  const traceOf = (span?: DeliverySpan) => span && reporter.guarded('telemetry', () => span.trace)

  function reject(error: RejectionError, startedAt: number, event?: MediaEvent, span?: DeliverySpan): Acknowledgement {
    const acknowledgement = rejection(error.code, error.message)
    reporter.delivery(acknowledgement, startedAt, event, error, span)
    return acknowledgement
  }

  function ended(): void {
    if (--inFlight === 0) allEnded()
  }

  /** Accepts a look-up as if it were a verified delivery. Logged, but not reported to the `delivery` hook. */
  async function acceptLookup(found: object, options: AcceptOptions = {}): Promise<LookupOutcome> {
    checkOptions('accept', options, { waitUntil: aFunction })
    const risk = options.waitUntil === undefined && lossWithoutWait
    if (ack === 'handled') throw new WebhookError('invalid_option', "accept: needs ack 'accepted'")
    if (risk) throw new WebhookError('invalid_option', `accept: ${risk}, or pass waitUntil`)
    inFlight++
    try {
      closing.checkOpen()
      const event = await parseLookup(parsing, found)
      const { key, type, mediaId } = event
      const isHandled = registry.handles(type, event.test)
      const outcome = isHandled ? ((await putInInbox(event, options.waitUntil)) as 'accepted' | 'duplicate') : 'ignored'
      if (outcome === 'accepted') conflicts.accepted.remember(event)
      logger[outcome === 'accepted' ? 'info' : 'debug']({ outcome, key, type, mediaId }, `look-up ${outcome}`)
      return outcome
    } catch (thrown) {
      throw toRejectionError(thrown)
    } finally {
      ended()
    }
  }

  /** Waits for deliveries in flight, at most half of `timeoutMs`, then closes the inbox in the time left. */
  async function close(timeoutMs: number): Promise<CloseReport> {
    const startedAt = performance.now()
    if (telemetry !== undefined) reporter.guarded('telemetry', () => telemetry.closing())
    const idle = new Promise<void>((resolve) => {
      allEnded = resolve
    })
    inbox.retryNow?.()
    if (inFlight > 0) await within(Math.min(timeoutMs / 2, maxWaitMs), idle, () => {})
    return inbox.close({ timeoutMs: Math.max(0, timeoutMs - (performance.now() - startedAt)) })
  }

  return { receive: receiveTraced, accept: acceptLookup, close: (options?: CloseOptions) => closing.start(options) }
}

/** @param noExpecting why `expect` can't work here; `undefined` if it can */
function withRegistration(
  registry: HandlerRegistry,
  noExpecting: string | undefined,
  path: Pick<
    Receiver<never, never>,
    'inbox' | 'sender' | 'setup' | 'receive' | 'accept' | 'observe' | 'handle' | 'ready' | 'close'
  >,
): Receiver<never, never> {
  const receiver: Receiver<never, never> = {
    ...path,
    on(type, handler, options) {
      registry.add([type].flat() as string[], handler, options)
      return receiver
    },
    onAny(handler, options) {
      registry.add(undefined, handler, options)
      return receiver
    },
    expect(type, rule, handler) {
      if (noExpecting !== undefined) throw new WebhookError('invalid_option', `expect: ${noExpecting}`)
      registry.addExpectation([type].flat() as string[], rule, handler, path.accept as AcceptLookup)
      return receiver
    },
    off(type: string | readonly string[] | Handler<never, never>, handler?: Handler<never, never>) {
      if (typeof type === 'function') registry.remove(undefined, type)
      else registry.remove([type].flat(), handler)
      return receiver
    },
    handles: (type) => registry.handles(type),
    onError(handler) {
      registry.addErrorHandler(handler)
      return receiver
    },
  }
  return receiver
}
