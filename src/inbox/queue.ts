import type { IdempotencyStore } from '../idempotency/store.ts'
import { aFunction, checkOptions, having, type Rules, required, wholeNumber } from '../internal/check-options.ts'
import { throttled } from '../internal/logger.ts'
import { type MaybePromise, measure } from '../internal/maybe-promise.ts'
import { maxWaitMs, within } from '../internal/timers.ts'
import { Closing } from './closing.ts'
import { defineInbox } from './define-inbox.ts'
import { type ClaimedAttempt, ClaimedAttempts } from './engine/claimed-attempts.ts'
import type {
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
  MessageOptions,
  MessageResult,
} from './inbox.ts'
import { noDeadLetters } from './operations/dead-letters.ts'
import { completeIn, HandlerClaims } from './queue/handler-claims.ts'
import { type QueueMessage, readMessage, toMessage } from './queue/message.ts'
import type { InboxStats } from './reading.ts'

export type { QueueMessage } from './queue/message.ts'

/** The options of `queueInbox`. */
export interface QueueInboxOptions {
  /** Sends an event to your queue. Resolve only once the message is stored: the delivery is then answered 200. */
  readonly send: (message: QueueMessage) => MaybePromise<unknown>
  /**
   * Remembers finished events and handlers. Share it between consumers: most queues deliver a message twice at times.
   */
  readonly store: IdempotencyStore
  /**
   * Time after which another consumer can take over from a crashed one (ms).
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * Time limit for `send` (ms). After it, the delivery is answered 503 `unavailable`.
   * @defaultValue 2_500
   */
  readonly sendTimeoutMs?: number
}

/**
 * An inbox that hands each event to a queue, for functions and the edge, whose process may end once it has answered.
 * `receiver.handle` consumes the messages, in the same process or another.
 *
 * ```ts
 * const inbox = queueInbox({ send: (message) => env.QUEUE.send(message), store: redisStore({ client }) })
 * const receiver = createReceiver({ verify, inbox })
 * // in the consumer
 * const result = await receiver.handle(message.body, { attempt: message.attempts })
 * ```
 *
 * The queue keeps the events: look there for counts and dead letters. Its attempt limit applies too, so set it to
 * `retry.attempts`.
 * @throws WebhookError `invalid_option`
 */
export function queueInbox(options: QueueInboxOptions): InboxDefinition {
  checkOptions('queueInbox', options, rules)
  const { send, store, leaseMs = 30_000, sendTimeoutMs = 2_500 } = options
  const settings = { send, store, leaseMs, sendTimeoutMs }
  return defineInbox({
    name: 'queueInbox',
    storage: 'handed-over',
    localKeys: store.isLocal,
    open: (host) => new QueueInbox(host, settings),
  })
}

const rules: Rules<QueueInboxOptions> = {
  send: required(aFunction),
  store: required(having('redisStore(), the result of defineStore() or, for one process, lruStore()', 'claims')),
  leaseMs: wholeNumber(),
  sendTimeoutMs: wholeNumber(),
}

class QueueInbox implements Inbox {
  /** The queue keeps them. */
  readonly deadLetters = noDeadLetters
  readonly #host: InboxHost
  readonly #options: Required<QueueInboxOptions>
  readonly #attempts: ClaimedAttempts
  /** The answer if another consumer may hold the event. Coming back within its lease would waste a queue attempt. */
  readonly #afterLease: MessageResult
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, options: Required<QueueInboxOptions>) {
    this.#host = host
    this.#options = options
    this.#afterLease = { status: 'retry', delayMs: options.leaseMs }
    this.#attempts = new ClaimedAttempts(options.store, options.leaseMs, host.logger)
  }

  async accept(accepted: AcceptedEvent): Promise<'accepted'> {
    this.#closing.checkOpen()
    const { send, sendTimeoutMs } = this.#options
    const message = await toMessage(accepted)
    const onTimeout = (): never => {
      throw new Error(`the queue did not answer within ${sendTimeoutMs} ms`)
    }
    const sent = () => within(sendTimeoutMs, Promise.resolve(message).then(send), onTimeout)
    await measure(this.#host.measured, 'send', sent)
    return 'accepted'
  }

  async handleMessage(message: unknown, options: MessageOptions = {}): Promise<MessageResult> {
    // A count read from the wrong field would end the retries at the first failure.
    checkOptions('receiver.handle', options, { attempt: wholeNumber() })
    const { attempt: number = 1 } = options
    const accepted = readMessage(message)
    if (accepted === undefined) return this.#unreadable()
    const { key } = accepted.event
    if (this.#closing.hasStarted) return { status: 'retry', delayMs: 0 }
    const attempt = await this.#attempts.begin(accepted, number)
    if (attempt === undefined) return this.#afterLease
    try {
      const claim = await measure(this.#host.measured, 'claim', () => this.#attempts.claims.claim(key))
      if (claim === 'done') return { status: 'done' }
      if (claim !== 'claimed') return this.#afterLease
      return await this.#attempt(attempt)
    } catch (err) {
      // The store is unreachable. Claims it took anyway are released, or expire.
      throttled(this.#host.logger).warn({ key, err }, 'the message was not handled; the queue must deliver it again')
      return this.#afterLease
    } finally {
      this.#attempts.end(attempt)
    }
  }

  /** Handles a claimed event, and releases the claim unless the event is done. */
  async #attempt(attempt: ClaimedAttempt): Promise<MessageResult> {
    const { event } = attempt.accepted
    const { claims } = this.#attempts
    const handlers = new HandlerClaims(claims, event, this.#host.handlersOf(event), attempt.number)
    let isDone = false
    try {
      const completed = await handlers.claim()
      if (completed === undefined || attempt.aborted) return this.#afterLease
      attempt.completed = completed
      attempt.succeeded = (handler) => this.#awaitRecord(handlers.complete(handler))
      const result = await this.#host.handle(attempt.accepted, attempt)
      isDone = result.status === 'done'
      if (result.status === 'done') await this.#awaitRecord(completeIn(claims, event.key))
      else await this.#awaitRecord(Promise.all(result.completed.map((handler) => handlers.complete(handler))))
      return result
    } finally {
      await handlers.release()
      if (!isDone && !attempt.isDropped) await claims.release(event.key)
    }
  }

  /** Waits for a record, up to a lease: a store outage is no reason to handle the event again. */
  #awaitRecord(record: Promise<unknown>): Promise<void> {
    return within(this.#options.leaseMs, record, () => {}).then(() => {})
  }

  #unreadable(): MessageResult {
    const message = 'not a message from queueInbox'
    throttled(this.#host.logger).error({}, message)
    return { status: 'dead', failures: [{ handler: 'none', message }] }
  }

  stats(): InboxStats {
    return { waiting: 0, running: this.#attempts.running.length, retrying: 0, deadLetters: 0 }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Finishes running attempts. The queue delivers the rest to another consumer. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    const idle = new Promise<void>((resolve) => {
      this.#attempts.onIdle = resolve
    })
    if (this.#attempts.running.length > 0) await within(Math.min(timeoutMs, maxWaitMs), idle, () => {})
    const { running: unfinished } = this.#attempts
    this.#attempts.stop()
    return { unfinished }
  }
}
