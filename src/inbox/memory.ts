import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { ownClaims } from '../idempotency/lru.ts'
import type { Claim, Claims, IdempotencyStore } from '../idempotency/store.ts'
import { checkOptions, having, maxCache, type Rules, wholeNumber } from '../internal/check-options.ts'
import { type Logger, throttled } from '../internal/logger.ts'
import { isPromise, type MaybePromise, measure } from '../internal/maybe-promise.ts'
import { requestsEndWork } from '../internal/requests.ts'
import { Closing } from './closing.ts'
import { defineInbox } from './define-inbox.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  ImmediateResult,
  Inbox,
  InboxDefinition,
  InboxHost,
} from './inbox.ts'
import { MemoryDeadLetters } from './memory/dead-letters.ts'
import { MemoryEngine } from './memory/engine.ts'
import { MemoryEvents } from './memory/events.ts'
import { MemoryExpectations } from './memory/expectations.ts'
import { InRequestInbox } from './memory/in-request.ts'
import { type EarlierAttempts, Job } from './memory/job.ts'
import { Jobs } from './memory/jobs.ts'
import { MemorySettling } from './memory/settle.ts'
import { historyOf } from './operations/event-query.ts'
import { limitOf } from './operations/page.ts'
import type { DeadEvent, EventRecord, InboxStats, OpenExpectation, UnreadableDelivery } from './reading.ts'

/** The options of `memoryInbox`. */
export interface MemoryInboxOptions {
  /**
   * Remembers claimed and handled events. Machines that share one handle no event twice. Closing the inbox leaves it
   * open.
   * @defaultValue `lruStore()`
   */
  readonly store?: IdempotencyStore
  /**
   * Lease of a claim (ms), renewed every third of it.
   * @defaultValue 5_000
   */
  readonly leaseMs?: number
  /**
   * Events handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * Maximum number of events waiting for a slot or a retry. Scales the memory limit too (64 MiB at the default). Beyond
   * either, deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * Newest dead letters kept, besides 100 unreadable ones. Scales their memory limit too (32 MiB at the default).
   * @defaultValue 1_000
   */
  readonly maxDeadLetters?: number
}

/**
 * An inbox in process memory. Slow handlers, bursts and an orderly shutdown lose nothing; a crash loses every
 * acknowledged event that was not handled yet.
 * @throws WebhookError `invalid_option`
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  checkOptions('memoryInbox', options, rules)
  const { store, leaseMs = 5_000, concurrency = 16, maxWaiting = 10_000, maxDeadLetters = 1_000 } = options
  const settings = { store, leaseMs, concurrency, maxWaiting, maxDeadLetters }
  const open = (host: InboxHost) =>
    requestsEndWork
      ? new InRequestInbox(host, store ?? { claims: ownClaims }, leaseMs)
      : new MemoryInbox(host, settings)
  return defineInbox({
    name: 'memoryInbox',
    handlesNow: true,
    // With a shared store, the event that ends an expectation may reach another process.
    expects: store === undefined || store.isLocal,
    ordersStrictly: store === undefined || store.isLocal,
    limits: !requestsEndWork,
    storage: 'memory',
    localKeys: store === undefined || store.isLocal,
    open,
  })
}

const rules: Rules<MemoryInboxOptions> = {
  store: having('lruStore(), redisStore() or the result of defineStore()', 'claims'),
  leaseMs: wholeNumber(),
  concurrency: wholeNumber(),
  maxWaiting: wholeNumber(),
  maxDeadLetters: wholeNumber(maxCache),
}

type MemorySettings = Required<Omit<MemoryInboxOptions, 'store'>> & Pick<MemoryInboxOptions, 'store'>

class MemoryInbox implements Inbox {
  readonly deadLetters: MemoryDeadLetters
  readonly events: MemoryEvents
  readonly #maxWaiting: number
  readonly #logger: Logger
  readonly #measured: InboxHost['measured']
  readonly #jobs = new Jobs()
  readonly #claims: Claims
  readonly #settling: MemorySettling
  readonly #engine: MemoryEngine
  readonly #expectations: MemoryExpectations
  readonly #expectationChanges: InboxHost['expectations']
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, options: MemorySettings) {
    const { parse, logger, measured, expectations } = host
    const { store, leaseMs, concurrency, maxWaiting, maxDeadLetters } = options
    this.#maxWaiting = maxWaiting
    this.#logger = logger
    this.#expectationChanges = expectations
    this.#measured = measured
    this.deadLetters = new MemoryDeadLetters(
      maxDeadLetters,
      (deadEvent) => this.#replay(deadEvent),
      async (unreadable) => this.#acceptAgain(await parse(unreadable), unreadable),
      ({ key }) => logger.error({ key }, 'a dead letter was dropped to make room for a newer one'),
    )
    const onLost = (key: string) => this.#leaseLost(key)
    const onEnd = (key: string) => this.#leaseEnded(key)
    this.#claims = store?.claims({ leaseMs, logger, onLost, onEnd }) ?? ownClaims()
    this.#settling = new MemorySettling(this.#jobs, this.#claims, this.deadLetters)
    this.#engine = new MemoryEngine(host, this.#settling, concurrency)
    this.events = new MemoryEvents(this.#jobs, this.deadLetters, this.#engine)
    this.#expectations = new MemoryExpectations(
      // Once the store has evicted its key, an overdue event can come again while the first is being handled.
      (overdue) => this.#jobs.get(overdue.event.key) !== undefined || this.#addAgain(overdue),
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
    const held = this.#jobs.get(accepted.event.key)
    // Until the claim is answered, the first delivery may still fail, so its duplicates wait for it.
    if (held !== undefined) return held.claim === undefined ? 'duplicate' : held.claim.then(duplicateOf)
    const job = this.#admit(accepted, false, earlier)
    if (job === undefined) return 'overloaded'
    const claim = this.#claim(job, waitUntil)
    return isPromise(claim) ? claim.then(acceptanceOf) : acceptanceOf(claim)
  }

  async handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const held = this.#jobs.get(accepted.event.key)
    const job = held ?? this.#admit(accepted, true, this.#settling.earlierAttempts(accepted.event.key))
    if (job === undefined) return 'overloaded'
    const result = job.result()
    // Rejects when the claim fails. Any answer but `claimed` ends the job with that result.
    await (held === undefined ? this.#claim(job) : held.claim)
    return result
  }

  /** Adds a job if there is room. Call it before the claim: others must not see a claim that is then withdrawn. */
  #admit(accepted: AcceptedEvent, once: boolean, earlier?: EarlierAttempts): Job | undefined {
    this.#closing.checkOpen()
    if (this.#jobs.isFull(this.#jobs.size - this.#engine.running, this.#maxWaiting)) return undefined
    const job = new Job(accepted, this.#claims, earlier, once)
    this.#jobs.add(job)
    return job
  }

  #claim(job: Job, waitUntil?: AcceptOptions['waitUntil']): MaybePromise<Claim> {
    try {
      // Must come before the claim: the promise resolves when the job ends, even if the claim fails.
      if (waitUntil !== undefined) waitUntil(job.result())
      const claim = measure(this.#measured, 'claim', () => this.#claims.claim(job.key))
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
    if (claim === 'claimed') this.#accepted(job)
    else this.#jobs.end(job, claim === 'done' ? 'duplicate' : 'in-progress')
    return claim
  }

  #accepted(job: Job): void {
    const changes = this.#expectationChanges?.(job.accepted)
    if (changes !== undefined) this.#expectations.apply(job.lane, changes)
    this.#engine.add(job)
  }

  /** The inbox closed while the claim was pending. The sender gets 503; its retry may reach another process. */
  #claimedTooLate({ key }: Job): never {
    void this.#claims.release(key)
    throw new WebhookError('closing', 'the inbox is closing')
  }

  #claimFailed(job: Job, error: unknown): never {
    this.#jobs.end(job, 'failed')
    throw error
  }

  #replay({ key, event, receivedAt, trace, completed, failedAttempts }: DeadEvent): void {
    if (this.#jobs.get(key) !== undefined) throw new WebhookError('in_progress', 'the event is being handled')
    const since = Date.now()
    if (!this.#addAgain({ event, receivedAt, trace }, { attempts: 0, completed, failedAttempts, since }))
      throw overloaded()
  }

  /** Adds an event without a claim. Returns `false` if there is no room. */
  #addAgain(accepted: AcceptedEvent, earlier?: EarlierAttempts): boolean {
    const job = this.#admit(accepted, false, earlier)
    if (job !== undefined) this.#engine.add(job)
    return job !== undefined
  }

  /** Accepts a once unreadable delivery's event. Its sender may have sent it again meanwhile. */
  async #acceptAgain(event: MediaEvent, { receivedAt, trace }: UnreadableDelivery): Promise<void> {
    const sinceNow = { attempts: 0, completed: [], since: Date.now() }
    if ((await this.accept({ event, receivedAt, trace }, {}, sinceNow)) === 'overloaded') throw overloaded()
  }

  keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    return this.deadLetters.addUnreadable(unreadable)
  }

  #leaseLost(key: string): void {
    const job = this.#jobs.get(key)
    if (job === undefined) return
    throttled(this.#logger).warn({ key }, 'the lease of the event was lost; another process handles it')
    job.stop(leaseLost())
    this.#engine.lost(job)
    this.#jobs.end(job, 'in-progress')
  }

  /** Stops the attempt: another process may have the event now. The next attempt waits for the claim. */
  #leaseEnded(key: string): void {
    const job = this.#jobs.get(key)
    if (job?.state === 'running') job.attempt?.abort(leaseLost())
  }

  stats(): InboxStats {
    const { size: expected } = this.#expectations
    return { ...this.#jobs.counts(), deadLetters: this.deadLetters.size, ...(expected > 0 && { expected }) }
  }

  expected(limit?: number): readonly OpenExpectation[] {
    return this.#expectations.list(limitOf('expected', limit))
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return historyOf(this.events, mediaId)
  }

  // No other process has these events, and this one may end before they are due.
  retryNow(): void {
    for (const job of this.#jobs) this.#engine.retryNow(job)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    if (this.#expectations.size > 0)
      this.#logger.warn({ expected: this.#expectations.size }, 'the inbox closed; its open expectations are lost')
    this.#expectations.stop()
    this.retryNow()
    await this.#jobs.idle(timeoutMs)
    // Their handlers have ended. The claims log each failed record.
    const unrecorded = this.#jobs.release(['recording'])
    const unfinished = this.#jobs.release()
    this.#engine.stop()
    // Let the leases expire instead of releasing them: a handler may ignore its signal and still be running.
    this.#claims.stop()
    for (const { event, state } of unfinished) {
      const { key, type, mediaId } = event
      this.#logger.error({ key, type, mediaId, state }, 'the inbox closed before the event was handled')
    }
    return { unfinished: [...unfinished, ...unrecorded] }
  }
}

const overloaded = () => new WebhookError('overloaded', 'too many events are waiting')

const leaseLost = () => new WebhookError('lease_lost', 'the lease of the event was lost')

const duplicateOf = (claim: Claim): Acceptance => (claim === 'claimed' ? 'duplicate' : acceptanceOf(claim))

function acceptanceOf(claim: Claim): Acceptance {
  // The other process may crash before it acknowledges, so the sender must send the event again.
  if (claim === 'in-progress') throw new WebhookError('in_progress', 'another process is accepting the event')
  return claim === 'claimed' ? 'accepted' : 'duplicate'
}
