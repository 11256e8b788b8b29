import { type Acknowledgement, acknowledged, type Delivery, refusal, toRefusal } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { EventType, MediaEvent } from '../events/catalogue.ts'
import { createDispatcher, type DispatcherOptions } from '../handlers/dispatcher.ts'
import type { Handler } from '../handlers/handler.ts'
import { HandlerRegistry } from '../handlers/registry.ts'
import { retrySchedule } from '../handlers/retry.ts'
import type { Inbox, ReadRefused } from '../inbox/inbox.ts'
import { memoryInbox } from '../inbox/memory.ts'
import { checkNumbers } from '../internal/check-options.ts'
import { consoleLogger, unfailing } from '../internal/logger.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import { accept, acceptAndHandle } from './accept.ts'
import { checkReceiverOptions } from './check-receiver-options.ts'
import { guard, readBody } from './guard.ts'
import type { Receiver, ReceiverOptions } from './options.ts'
import { eventReader } from './read-event.ts'
import { createReporter } from './reporter.ts'
import { verifyDelivery } from './verify-delivery.ts'

/**
 * Makes a receiver.
 *
 * ```ts
 * const receiver = createReceiver({ verify: urlToken({ secret: process.env.WEBHOOK_TOKEN! }) })
 * receiver.on('encoding.finished', (event) => publish(event.mediaId, event.qualities))
 * ```
 * @throws WebhookError `invalid_option`
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  checkReceiverOptions(options)
  const { verify: verifier, inbox = memoryInbox(), maxBodyBytes = 65_536, logger = consoleLogger } = options
  const { ack = 'accepted', ackTimeoutMs = 2_500, handlerTimeoutMs = 30_000 } = options
  checkNumbers('createReceiver', { maxBodyBytes, ackTimeoutMs, handlerTimeoutMs })
  const registry = new HandlerRegistry(options.handlers ?? {})
  const reporter = createReporter(options.hooks ?? {}, logger)
  const { readEvent, readRefused } = eventReader(inbox, options.eventKey, (error) =>
    unfailing(logger).error({ err: error }, 'a genuine delivery that was refused could not be kept'),
  )
  let closing = false

  /** The path of a delivery. What is no promise is not awaited: each await costs as much as parsing the JSON. */
  async function receive(delivery: Delivery): Promise<Acknowledgement> {
    const startedAt = performance.now()
    let event: MediaEvent | undefined
    try {
      if (closing) throw new WebhookError('closing', 'the receiver is closing')
      guard(delivery, maxBodyBytes)
      const read = readBody(delivery, maxBodyBytes)
      const body = isPromise(read) ? await read : read
      const verified = verifyDelivery(verifier, delivery, body)
      const eventId = isPromise(verified) ? await verified : verified
      const parsed = readEvent(delivery, body, eventId)
      event = isPromise(parsed) ? await parsed : parsed
      const taken = registry.handles(event.type) ? take(event, delivery) : 'ignored'
      const acknowledgement = acknowledged[isPromise(taken) ? await taken : taken]
      reporter.delivery(acknowledgement, startedAt, event)
      return acknowledgement
    } catch (thrown) {
      const error = toRefusal(thrown)
      const acknowledgement = refusal(error.code, error.message)
      reporter.delivery(acknowledgement, startedAt, event, error)
      return acknowledgement
    }
  }

  const take = (event: MediaEvent, { waitUntil }: Delivery) => {
    const accepted = { event, receivedAt: new Date() }
    const stay = waitUntil && ((promise: Promise<unknown>) => reporter.guarded('waitUntil', () => waitUntil(promise)))
    return ack === 'accepted'
      ? accept(inbox, accepted, stay)
      : acceptAndHandle(inbox as Required<Inbox>, accepted, ackTimeoutMs, stay)
  }

  // Beyond this point a logger that throws would break what has nothing to do with it.
  startHandling(options, { inbox, readRefused, registry, reporter, logger: unfailing(logger), handlerTimeoutMs })

  return withRegistration(registry, {
    inbox,
    receive,
    // Async, so that an option it refuses is a rejection, as every failure of closing is.
    async close(options) {
      const closed = inbox.close(options)
      closing = true
      return closed
    },
  })
}

type HandlingParts = Omit<DispatcherOptions, 'retry'> & { readonly inbox: Inbox; readonly readRefused: ReadRefused }

function startHandling({ ack, retry }: ReceiverOptions, { inbox, readRefused, ...parts }: HandlingParts): void {
  const handle = createDispatcher({ ...parts, retry: ack === 'handled' ? undefined : retrySchedule(retry) })
  void Promise.resolve(inbox.start(handle, parts.logger, readRefused)).catch((error) =>
    parts.logger.error({ err: error }, 'the inbox could not be started'),
  )
}

/** The receiver, with the methods that register handlers. */
function withRegistration(registry: HandlerRegistry, path: Pick<Receiver, 'inbox' | 'receive' | 'close'>): Receiver {
  const receiver: Receiver = {
    ...path,
    on(type, handler, options) {
      registry.add(typeof type === 'string' ? [type] : type, handler, options)
      return receiver
    },
    onAny(handler, options) {
      registry.add(undefined, handler, options)
      return receiver
    },
    off(type: EventType | readonly EventType[] | Handler<never>, handler?: Handler<never>) {
      if (typeof type === 'function') registry.remove(undefined, type)
      else if (handler !== undefined) registry.remove(typeof type === 'string' ? [type] : type, handler)
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
