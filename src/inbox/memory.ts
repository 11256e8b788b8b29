import { LRUCache } from 'lru-cache'
import { checkNumbers } from '../check-options.ts'
import { ChurnMap } from '../churn-map.ts'
import { WebhookError } from '../errors.ts'
import { lruStore } from '../idempotency/lru.ts'
import type { Claim, IdempotencyStore } from '../idempotency/store.ts'
import { consoleLogger, type Logger, unfailing } from '../logger.ts'
import { isPromise, type MaybePromise } from '../maybe-promise.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  DeadLetter,
  Handle,
  HandlingResult,
  ImmediateResult,
  Inbox,
  InboxStats,
  UnfinishedEvent,
} from './inbox.ts'
import { Lanes } from './lanes.ts'
import { Leases } from './leases.ts'
import { MemoryDeadLetters } from './memory-dead-letters.ts'
import { MemoryJob } from './memory-job.ts'

export interface MemoryInboxOptions {
  /**
   * Deduplicates. A store that several machines share keeps their inboxes from handling one event twice. It is not
   * closed with the inbox.
   * @defaultValue `lruStore()`
   */
  readonly store?: IdempotencyStore
  /**
   * How long a claim lasts unless it is renewed, in ms; it is renewed every third of it.
   * @defaultValue 5_000
   */
  readonly leaseMs?: number
  /**
   * How many events are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How many events may wait, those that wait for a retry included; above it deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * How many dead letters are kept, the newest.
   * @defaultValue 1_000
   */
  readonly maxDeadLetters?: number
}

/**
 * Keeps accepted events in this process. It is safe against slow handlers, bursts and an orderly shutdown; a crash
 * loses what was acknowledged and not yet handled.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): Inbox {
  return new MemoryInbox(options)
}

class MemoryInbox implements Inbox {
  readonly deadLetters: MemoryDeadLetters
  readonly #maxWaiting: number
  /** Every event that has not ended, by key. A duplicate of one of them never gets to the store. */
  readonly #jobs = new ChurnMap<string, MemoryJob>()
  readonly #lanes: Lanes<MemoryJob>
  readonly #leases: Leases
  /** What `handleNow` could not finish, so that the sender's retry leaves out the handlers that succeeded. */
  readonly #failedBefore: LRUCache<string, { readonly attempts: number; readonly completed: readonly string[] }>
  #handle: Handle | undefined
  #logger: Logger = consoleLogger
  #closing: Promise<CloseReport> | undefined
  #onIdle: (() => void) | undefined

  constructor({
    store = lruStore(),
    leaseMs = 5_000,
    concurrency = 16,
    maxWaiting = 10_000,
    maxDeadLetters = 1_000,
  }: MemoryInboxOptions) {
    checkNumbers('memoryInbox', { leaseMs, concurrency, maxWaiting, maxDeadLetters })
    this.#maxWaiting = maxWaiting
    this.#lanes = new Lanes(concurrency, (job) => this.#run(job))
    this.#leases = new Leases(
      store,
      leaseMs,
      () => this.#logger,
      (key) => this.#leaseLost(key),
    )
    this.#failedBefore = new LRUCache({ max: maxWaiting })
    this.deadLetters = new MemoryDeadLetters(
      maxDeadLetters,
      (letter) => this.#replay(letter),
      ({ key }) => this.#logger.error({ key }, 'a dead letter was dropped to make room for a newer one'),
    )
  }

  start(handle: Handle, logger: Logger): void {
    if (this.#handle !== undefined) throw new WebhookError('invalid_option', 'an inbox serves one receiver')
    this.#handle = handle
    this.#logger = unfailing(logger)
  }

  accept(accepted: AcceptedEvent, { waitUntil }: AcceptOptions = {}): MaybePromise<Acceptance> {
    const held = this.#jobs.get(accepted.event.key)
    // While the first delivery's claim is under way nobody knows yet whether the event is safe: its fate is shared.
    if (held !== undefined) return held.claim === undefined ? 'duplicate' : held.claim.then(() => 'duplicate')
    const job = this.#admit(accepted, false)
    if (job === undefined) return 'overloaded'
    const claim = this.#claim(job, waitUntil)
    return isPromise(claim) ? claim.then(acceptanceOf) : acceptanceOf(claim)
  }

  async handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const held = this.#jobs.get(accepted.event.key)
    const job = held ?? this.#admit(accepted, true)
    if (job === undefined) return 'overloaded'
    const result = job.ended()
    const claim = await (held === undefined ? this.#claim(job) : held.claim)
    if (claim === 'done') return 'duplicate'
    if (claim === 'in-progress') return 'in-progress'
    return result
  }

  /** Takes the event in, unless there is no room. Before the claim: one that had to be undone could be seen. */
  #admit(accepted: AcceptedEvent, once: boolean): MemoryJob | undefined {
    if (this.#handle === undefined) throw new WebhookError('unavailable', 'the inbox has not been started')
    if (this.#closing !== undefined) throw new WebhookError('closing', 'the inbox is closing')
    if (this.#jobs.size - this.#lanes.running >= this.#maxWaiting) return undefined
    const { attempts = 0, completed = [] } = (once && this.#failedBefore.get(accepted.event.key)) || {}
    const job = new MemoryJob(accepted, once, attempts, completed)
    this.#jobs.set(job.key, job)
    return job
  }

  #claim(job: MemoryJob, waitUntil?: AcceptOptions['waitUntil']): MaybePromise<Claim> {
    try {
      // Even where the claim fails: the promise resolves at the job's end, whichever it is.
      if (waitUntil !== undefined) {
        job.inItsRequest = true
        waitUntil(job.ended())
      }
      const claim = this.#leases.claim(job.key)
      if (!isPromise(claim)) return this.#claimed(job, claim)
      job.claim = claim.then(
        (answer) => this.#claimed(job, answer),
        (error) => this.#claimFailed(job, error),
      )
      return job.claim
    } catch (error) {
      return this.#claimFailed(job, error)
    }
  }

  #claimed(job: MemoryJob, claim: Claim): MaybePromise<Claim> {
    job.claim = undefined
    if (job.hasEnded) return this.#claimedTooLate(job)
    if (claim === 'claimed') this.#enqueue(job)
    else this.#forget(job, claim === 'done' ? 'duplicate' : 'in-progress')
    return claim
  }

  /** The inbox closed while the event was claimed: the sender is told, and the retry may go elsewhere. */
  async #claimedTooLate({ key }: MemoryJob): Promise<never> {
    await this.#leases.release(key)
    throw new WebhookError('closing', 'the inbox closed while the event was claimed')
  }

  #claimFailed(job: MemoryJob, error: unknown): never {
    this.#forget(job, 'failed')
    throw error
  }

  #enqueue(job: MemoryJob): void {
    job.state = 'waiting'
    this.#lanes.add(job)
  }

  #run(job: MemoryJob): Promise<void> {
    if (job.hasEnded) return Promise.resolve()
    job.state = 'running'
    const { event, receivedAt } = job.accepted
    return (this.#handle as Handle)(event, receivedAt, job.attempt).then((result) => this.#ran(job, result))
  }

  #ran(job: MemoryJob, result: HandlingResult): MaybePromise<void> {
    // Its lease was lost, or the inbox gave up on it.
    if (job.hasEnded) return
    if (result.status === 'done') return this.#record(job, 'handled')
    if (job.once) return this.#giveBack(job, result.completed)
    if (result.status === 'retry') return this.#retryLater(job, result)
    return this.#bury(job, result)
  }

  #record(job: MemoryJob, result: 'handled' | 'failed'): void {
    job.state = 'recording'
    if (job.once) this.#failedBefore.delete(job.key)
    this.#leases.complete(job.key, () => this.#forget(job, result))
  }

  async #giveBack(job: MemoryJob, completed: readonly string[]): Promise<void> {
    this.#failedBefore.set(job.key, { attempts: job.attempt.number, completed })
    await this.#leases.release(job.key)
    this.#forget(job, 'failed')
  }

  #retryLater(job: MemoryJob, { delayMs, completed }: HandlingResult & { status: 'retry' }): void {
    job.state = 'retrying'
    job.nextAttempt(completed)
    job.retryTimer = setTimeout(() => this.#enqueue(job), delayMs)
  }

  #bury(job: MemoryJob, { completed, failures }: HandlingResult & { status: 'dead' }): void {
    const { key, accepted, attempt } = job
    this.deadLetters.add({ ...accepted, key, attempts: attempt.number, completed, failures, diedAt: new Date() })
    this.#record(job, 'failed')
  }

  #replay({ key, event, receivedAt, completed }: DeadLetter): void {
    if (this.#jobs.has(key)) throw new WebhookError('in_progress', 'the event is being handled')
    const job = this.#admit({ event, receivedAt }, false)
    if (job === undefined) throw new WebhookError('overloaded', 'the inbox is full')
    job.resume(completed)
    this.#enqueue(job)
  }

  #leaseLost(key: string): void {
    const job = this.#jobs.get(key)
    if (job === undefined) return
    this.#logger.warn({ key }, 'the lease of an event was lost; another process handles it')
    job.stop(new WebhookError('lease_lost', 'the lease of the event was lost'))
    this.#forget(job, 'in-progress')
  }

  #forget(job: MemoryJob, result: ImmediateResult): void {
    if (!job.hasEnded) this.#jobs.delete(job.key)
    job.end(result)
    if (this.#jobs.size === 0) this.#onIdle?.()
  }

  stats(): InboxStats {
    const stats = { waiting: 0, running: 0, retrying: 0, deadLetters: this.deadLetters.size }
    for (const [, { state }] of this.#jobs) {
      if (state === 'running' || state === 'retrying') stats[state]++
      else if (state !== 'recording') stats.waiting++
    }
    return stats
  }

  close({ timeoutMs = 10_000 }: CloseOptions = {}): Promise<CloseReport> {
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    await this.#idle(timeoutMs)
    const unfinished: UnfinishedEvent[] = []
    for (const [, job] of this.#jobs) {
      const { state } = job
      job.stop(new WebhookError('closing', 'the inbox is closing'))
      if (state !== 'claiming' && state !== 'recording') unfinished.push({ ...job.accepted, state })
      job.end('failed')
    }
    this.#jobs.clear()
    this.#lanes.clear()
    // Their claims are not released: a handler may go on in spite of its signal, and a lease that runs out is safe.
    this.#leases.stop()
    return { unfinished }
  }

  #idle(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#jobs.size === 0) return resolve()
      // A timer that is told to wait longer fires at once.
      const timer = setTimeout(resolve, Math.min(timeoutMs, 2_147_483_647))
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

const acceptanceOf = (claim: Claim): Acceptance => (claim === 'claimed' ? 'accepted' : 'duplicate')
