import { WebhookError } from '../errors.ts'
import { defaultMaxValues } from '../events/json.ts'
import { KeyInput } from '../events/kept-input.ts'
import { mediaService } from '../events/media-service/sender.ts'
import { isList, type Parsing, parseDelivery } from '../events/parse.ts'
import type { AnySender } from '../events/sender.ts'
import type { MediaService } from '../events/types.ts'
import { createHandle } from '../handlers/attempt.ts'
import type { AcceptLookup } from '../handlers/expectations.ts'
import type { Handler } from '../handlers/handler.ts'
import { HandlerRegistry } from '../handlers/registry.ts'
import { retrySchedule } from '../handlers/retry.ts'
import type { Inbox, InboxDefinition, InboxHost } from '../inbox/inbox.ts'
import { memoryInbox } from '../inbox/memory.ts'
import { defaultLogger, safeLogger } from '../internal/logger.ts'
import { checkReceiverOptions, type Receiver, type ReceiverOptions } from './options.ts'
import { checkPlatform, whyNotExpect } from './platform.ts'
import { DeliveryPath } from './receive.ts'
import { Reporter } from './reporter.ts'
import { SenderChanges } from './sender-changes.ts'

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
  checkReceiverOptions(options)
  const { verify: verifier, inbox: definition = memoryInbox(), telemetry, platform } = options
  const { ack = 'accepted', order = 'loose', handlerTimeoutMs = 30_000 } = options
  const { maxBodyBytes = 65_536, bodyTimeoutMs = 10_000, ackTimeoutMs = 2_500 } = options
  const { eventKey: keySource, maxJsonValues: maxValues = defaultMaxValues } = options
  const { retry = ack === 'handled' ? undefined : {} } = options
  const sender: AnySender = options.sender ?? mediaService
  const logger = options.logger ? safeLogger(options.logger) : defaultLogger
  const lossWithoutWait = checkPlatform(definition, ack, logger, platform)
  const registry = new HandlerRegistry(sender, options.handlers, retry, definition.limits ? undefined : definition.name)
  const reporter = new Reporter(options.hooks, logger, telemetry)
  const keyInput = new KeyInput((url) => verifier.withoutToken?.(url) ?? url)
  const senderChanges = new SenderChanges(logger, verifier, sender)
  const warn = typeof keySource === 'function' ? undefined : (warning: string) => senderChanges.warnOnce(warning)
  const parsing: Parsing = { sender, keySource, keyInput, maxValues, warn }
  const schedule = retry === undefined ? undefined : retrySchedule(retry)
  const host: InboxHost = {
    handle: createHandle({ registry, reporter, logger, handlerTimeoutMs, retry: schedule }),
    handlersOf: (event) => registry.handlersOf(event).map(({ name }) => name),
    handlers: () => registry.handlers,
    expectations: registry.expectationChanges.bind(registry),
    async parse(unreadable) {
      const parsed = await parseDelivery(parsing, unreadable.body, undefined, unreadable)
      return isList(parsed) ? parsed : [parsed]
    },
    logger,
    order,
    ack,
    deadLettered: (accepted, attempts) => reporter.attempt('dead-lettered', accepted, attempts),
    observe: (observer) => reporter.observe(observer),
    measured: reporter.measured,
  }
  const opened = (open: Inbox) => telemetry?.opened(open, definition.name, sender.types)
  const inbox = openInbox(definition, host, reporter, opened)
  const limits = { maxBodyBytes, bodyTimeoutMs, ackTimeoutMs }
  const path = new DeliveryPath({
    verifier,
    senderChanges,
    parsing,
    registry,
    inbox,
    ack,
    ...limits,
    lossWithoutWait,
    reporter,
    logger,
  })
  const receiver = withRegistration(registry, whyNotExpect(definition, ack, platform), {
    inbox,
    sender: sender as never,
    setup: { ack, order, inbox: definition, logger },
    receive: path.receive,
    accept: (found, options) => path.acceptLookup(found, options),
    observe: (hooks) => reporter.observe(hooks),
    async handle(message, options) {
      if (inbox.handleMessage !== undefined) return inbox.handleMessage(message, options)
      throw new WebhookError('invalid_option', 'receiver.handle needs queueInbox')
    },
    ready: () => path.ready(),
    close: (options) => path.close(options),
  })
  // The registry and the parser enforce these types at run time.
  return receiver as unknown as Receiver<Additions, Of>
}

function openInbox(
  definition: InboxDefinition,
  host: InboxHost,
  reporter: Reporter,
  opened: (inbox: Inbox) => void,
): Inbox {
  const inbox = definition.open(host)
  try {
    opened(inbox)
    return inbox
  } catch (error) {
    // Don't leak the inbox's file or connections.
    reporter.guarded('closing the inbox', () => inbox.close({ timeoutMs: 0 }))
    throw error
  }
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
