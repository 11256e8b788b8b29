import { WebhookError } from '../../errors.ts'
import { sizeOf } from '../../events/json.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { type FinishedKeys, finishedKeys } from '../../idempotency/lru.ts'
import { type Logger, throttled } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { Closing } from '../closing.ts'
import { withoutStack } from '../engine/stored.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  AttemptResult,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxHost,
} from '../inbox.ts'
import { readHistory } from '../operations/event-query.ts'
import { checkLimit } from '../operations/page.ts'
import type { DeadEvent, EventRecord, InboxStats, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import { MemoryDeadLetters } from './dead-letters.ts'
import { type JobWork, type LastResult, MemoryEngine } from './engine.ts'
import { MemoryEvents } from './events.ts'
import { MemoryExpectations } from './expectations.ts'
import { type EarlierAttempts, Job, JobAttempt } from './job.ts'
import { Jobs } from './jobs.ts'

export interface MemorySettings {
  readonly concurrency: number
  readonly maxWaiting: number
  readonly maxDeadLetters: number
}

/** Events in the memory of this process, which no other handles. Remembers which are done. */
export class MemoryInbox implements Inbox {
  readonly deadLetters: MemoryDeadLetters
  readonly events: MemoryEvents
  protected readonly jobs = new Jobs()
  protected readonly engine: MemoryEngine
  protected readonly closing = new Closing('the inbox is closing', (timeoutMs) => this.end(timeoutMs))
  protected readonly logger: Logger
  readonly #host: InboxHost
  readonly #maxWaiting: number
  readonly #expectations: MemoryExpectations
  /** Keys of events that are done. */
  #done: FinishedKeys<true> | undefined

  constructor(host: InboxHost, { concurrency, maxWaiting, maxDeadLetters }: MemorySettings) {
    const { parse, logger } = host
    this.#host = host
    this.#maxWaiting = maxWaiting
    this.logger = logger
    this.deadLetters = new MemoryDeadLetters(
      maxDeadLetters,
      (deadEvent) => this.#replay(deadEvent),
      async (unreadable) => {
        for (const event of await parse(unreadable)) await this.#acceptAgain(event, unreadable)
      },
      ({ key }) => logger.error({ key }, 'a dead letter was dropped to make room for a newer one'),
    )
    const work: JobWork = { attempt: (job) => this.attempt(job), settle: (job, result) => this.#settle(job, result) }
    this.engine = new MemoryEngine(work, host.order === 'strict', concurrency)
    this.events = new MemoryEvents(this.jobs, this.deadLetters, this.engine)
    this.#expectations = new MemoryExpectations(
      // Once its key is forgotten, an overdue event can come again while the first is being handled.
      (overdue) => this.holds(overdue.event.key) || this.#addAgain(overdue),
      ({ rule, mediaId }) =>
        throttled(logger).error({ rule, mediaId }, 'too many open expectations: this one was dropped'),
    )
  }

  /** @param earlier absent for a delivery */
  accept(
    accepted: AcceptedEvent,
    { waitUntil }: AcceptOptions = {},
    earlier?: EarlierAttempts,
  ): MaybePromise<Acceptance> {
    const { key } = accepted.event
    if (this.holds(key)) return 'duplicate'
    this.closing.checkOpen()
    if (this.#done?.get(key) !== undefined) return 'duplicate'
    if (this.isFull()) return 'overloaded'
    const job = new Job(accepted, earlier)
    // Before the job can be found: if it throws, nothing was accepted.
    waitUntil?.(job.ended())
    this.take(job)
    return 'accepted'
  }

  async acceptAll(accepted: readonly AcceptedEvent[], options?: AcceptOptions): Promise<readonly Acceptance[]> {
    const others = accepted.slice(1)
    const bytes = others.reduce((sum, { event }) => sum + sizeOf(event), 0)
    if (this.isFull(others.length, bytes)) return accepted.map(() => 'overloaded')
    return Promise.all(accepted.map((each) => this.accept(each, options)))
  }

  /** Tells whether an event is unfinished. */
  protected holds(key: string): boolean {
    return this.jobs.get(key) !== undefined
  }

  /**
   * Returns `true` if there is no room for an event.
   * @param count events that the inbox answers for beside its jobs, of `bytes`
   */
  protected isFull(count = 0, bytes = 0): boolean {
    return this.jobs.isFull(this.jobs.size - this.engine.running + count, this.#maxWaiting, bytes)
  }

  /** Puts an accepted event into its lane. */
  protected take(job: Job): void {
    const changes = this.#host.expectations?.(job.accepted)
    if (changes !== undefined) this.#expectations.apply(job.lane, changes)
    this.#add(job)
  }

  #add(job: Job): void {
    this.jobs.add(job)
    this.engine.add(job)
  }

  protected attempt(job: Job, attempt = new JobAttempt(job, this.engine)): Promise<AttemptResult> {
    job.start(attempt)
    return this.#host.handle(job.accepted, attempt)
  }

  #settle(job: Job, result: LastResult): void {
    if (result.status === 'dead') {
      const { completed, failures } = result
      const failedAttempts = job.failedWith(failures)
      const last = { failures: failures.map(withoutStack), failedAttempts, diedAt: new Date() }
      this.deadLetters.add({ ...job.accepted, key: job.key, attempts: job.number, completed, ...last })
    }
    this.remember(job)
    this.jobs.end(job, result.status === 'dead' ? 'failed' : 'handled')
  }

  /** Remembers that an event is done. */
  protected remember({ key }: Job): void {
    this.#done ??= finishedKeys()
    this.#done.set(key, true)
  }

  #replay({ key, event, receivedAt, trace, completed, failedAttempts }: DeadEvent): void {
    this.closing.checkOpen()
    if (this.holds(key)) throw new WebhookError('in_progress', 'the event is being handled')
    const since = Date.now()
    if (!this.#addAgain({ event, receivedAt, trace }, { attempts: 0, completed, failedAttempts, since }))
      throw overloaded()
  }

  /** Adds an event that was accepted before. Returns `false` if there is no room. */
  #addAgain(accepted: AcceptedEvent, earlier?: EarlierAttempts): boolean {
    if (this.closing.hasStarted || this.isFull()) return false
    this.#add(new Job(accepted, earlier))
    return true
  }

  /** Accepts a once unreadable delivery's event. Its sender may have sent it again meanwhile. */
  async #acceptAgain(event: MediaEvent, { receivedAt, trace }: UnreadableDelivery): Promise<void> {
    const sinceNow = { attempts: 0, completed: [], since: Date.now() }
    if ((await this.accept({ event, receivedAt, trace }, {}, sinceNow)) === 'overloaded') throw overloaded()
  }

  keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.closing.checkOpen()
    return this.deadLetters.addUnreadable(unreadable)
  }

  stats(): InboxStats {
    const { size: expected } = this.#expectations
    return { ...this.jobs.counts(), deadLetters: this.deadLetters.size, ...(expected > 0 && { expected }) }
  }

  expected(limit?: number): readonly OpenExpectation[] {
    return this.#expectations.list(checkLimit('expected', limit))
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return readHistory(this.events, mediaId)
  }

  // No other process has these events, and this one may end before they are due.
  retryNow(): void {
    for (const job of this.jobs) this.engine.retryNow(job)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.closing.start(options)
  }

  protected async end(timeoutMs: number): Promise<CloseReport> {
    if (this.#expectations.size > 0)
      this.logger.warn({ expected: this.#expectations.size }, 'the inbox closed; its open expectations are lost')
    this.#expectations.stop()
    this.retryNow()
    await this.jobs.idle(timeoutMs)
    const unfinished = this.jobs.endAll()
    this.engine.stop()
    for (const { event, state } of unfinished) {
      const { key, type, mediaId } = event
      this.logger.error({ key, type, mediaId, state }, 'the inbox closed before the event was handled')
    }
    return { unfinished }
  }
}

const overloaded = () => new WebhookError('overloaded', 'too many events are waiting')
