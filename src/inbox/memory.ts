import { WebhookError } from '../errors.ts'
import { lruStore } from '../idempotency/lru.ts'
import type { Claim, IdempotencyStore } from '../idempotency/store.ts'
import { checkNumbers, largestCache } from '../internal/check-options.ts'
import { consoleLogger, type Logger } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  DeadEvent,
  Handle,
  ImmediateResult,
  Inbox,
  InboxStats,
} from './inbox.ts'
import { MemoryDeadLetters } from './memory/dead-letters.ts'
import { MemoryLedger } from './memory/ledger.ts'
import { closingTime } from './shared/closing.ts'
import { Handling } from './shared/handling.ts'
import { type Before, Job } from './shared/job.ts'
import { Jobs } from './shared/jobs.ts'
import { Leases } from './shared/leases.ts'

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
  readonly #jobs = new Jobs()
  readonly #leases: Leases
  readonly #ledger: MemoryLedger
  readonly #handling: Handling
  #logger: Logger = consoleLogger
  #closing: Promise<CloseReport> | undefined

  constructor({
    store = lruStore(),
    leaseMs = 5_000,
    concurrency = 16,
    maxWaiting = 10_000,
    maxDeadLetters = 1_000,
  }: MemoryInboxOptions) {
    if (typeof store?.claim !== 'function')
      throw new WebhookError('invalid_option', 'memoryInbox: store is no store (is lruStore not called?)')
    checkNumbers('memoryInbox', { leaseMs, concurrency, maxWaiting })
    checkNumbers('memoryInbox', { maxDeadLetters }, largestCache)
    this.#maxWaiting = maxWaiting
    this.deadLetters = new MemoryDeadLetters(
      maxDeadLetters,
      (letter) => this.#replay(letter),
      ({ key }) => this.#logger.error({ key }, 'a dead letter was dropped to make room for a newer one'),
    )
    this.#leases = new Leases(
      store,
      leaseMs,
      () => this.#logger,
      (key) => this.#leaseLost(key),
    )
    this.#ledger = new MemoryLedger(this.#leases, this.deadLetters)
    this.#handling = new Handling({ jobs: this.#jobs, ledger: this.#ledger, concurrency })
  }

  start(handle: Handle, logger: Logger): void {
    if (this.#handling.hasStarted) throw new WebhookError('invalid_option', 'an inbox serves one receiver')
    this.#handling.start(handle)
    this.#logger = logger
  }

  accept(accepted: AcceptedEvent, { waitUntil }: AcceptOptions = {}): MaybePromise<Acceptance> {
    const held = this.#jobs.get(accepted.event.key)
    // While the first delivery's claim is under way nobody knows yet whether the event is safe: its fate is shared.
    if (held !== undefined) return held.claim === undefined ? 'duplicate' : held.claim.then(duplicateOf)
    const job = this.#admit(accepted, false)
    if (job === undefined) return 'overloaded'
    const claim = this.#claim(job, waitUntil)
    return isPromise(claim) ? claim.then(acceptanceOf) : acceptanceOf(claim)
  }

  async handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const held = this.#jobs.get(accepted.event.key)
    const job = held ?? this.#admit(accepted, true, this.#ledger.failedBefore(accepted.event.key))
    if (job === undefined) return 'overloaded'
    const result = job.ended()
    const claim = await (held === undefined ? this.#claim(job) : held.claim)
    if (claim === 'done') return 'duplicate'
    if (claim === 'in-progress') return 'in-progress'
    return result
  }

  /** Takes the event in, unless there is no room. Before the claim: one that had to be undone could be seen. */
  #admit(accepted: AcceptedEvent, once: boolean, before?: Before): Job | undefined {
    if (!this.#handling.hasStarted) throw new WebhookError('unavailable', 'the inbox has not been started')
    if (this.#closing !== undefined) throw new WebhookError('closing', 'the inbox is closing')
    if (this.#jobs.size - this.#handling.running >= this.#maxWaiting) return undefined
    const job = new Job(accepted, { once, before })
    this.#jobs.add(job)
    return job
  }

  #claim(job: Job, waitUntil?: AcceptOptions['waitUntil']): MaybePromise<Claim> {
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

  #claimed(job: Job, claim: Claim): Claim {
    job.claim = undefined
    if (job.hasEnded) return this.#claimedTooLate(job)
    if (claim === 'claimed') this.#handling.add(job)
    else this.#jobs.end(job, claim === 'done' ? 'duplicate' : 'in-progress')
    return claim
  }

  /** The inbox closed while the event was claimed: the sender is told, and the retry may go elsewhere. */
  #claimedTooLate({ key }: Job): never {
    void this.#leases.release(key)
    throw new WebhookError('closing', 'the inbox closed while the event was claimed')
  }

  #claimFailed(job: Job, error: unknown): never {
    this.#jobs.end(job, 'failed')
    throw error
  }

  #replay({ key, event, receivedAt, completed }: DeadEvent): void {
    if (this.#jobs.get(key) !== undefined) throw new WebhookError('in_progress', 'the event is being handled')
    const job = this.#admit({ event, receivedAt }, false, { attempts: 0, completed })
    if (job === undefined) throw new WebhookError('overloaded', 'the inbox is full')
    this.#handling.add(job)
  }

  #leaseLost(key: string): void {
    const job = this.#jobs.get(key)
    if (job === undefined) return
    this.#logger.warn({ key }, 'the lease of an event was lost; another process handles it')
    job.stop(new WebhookError('lease_lost', 'the lease of the event was lost'))
    this.#jobs.end(job, 'in-progress')
  }

  stats(): InboxStats {
    return { ...this.#jobs.counts(), deadLetters: this.deadLetters.size }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    const timeoutMs = closingTime(options)
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    await this.#jobs.idle(timeoutMs)
    const unfinished = this.#jobs.giveUp()
    this.#handling.stop(() => {})
    // Their claims are not released: a handler may go on in spite of its signal, and a lease that runs out is safe.
    this.#leases.stop()
    for (const { event, state } of unfinished) {
      const { key, type, mediaId } = event
      this.#logger.error({ key, type, mediaId, state }, 'the inbox closed before the event was handled')
    }
    return { unfinished }
  }
}

const duplicateOf = (claim: Claim): Acceptance => (claim === 'claimed' ? 'duplicate' : acceptanceOf(claim))

function acceptanceOf(claim: Claim): Acceptance {
  // Another process has claimed the event. It may die before it acknowledges, so that nobody may forget the event yet.
  if (claim === 'in-progress') throw new WebhookError('in_progress', 'another process is taking the event')
  return claim === 'claimed' ? 'accepted' : 'duplicate'
}
