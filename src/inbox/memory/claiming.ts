import { LRUCache } from 'lru-cache'
import { WebhookError } from '../../errors.ts'
import { sizeOf } from '../../events/json.ts'
import type { Claim, Claims, IdempotencyStore } from '../../idempotency/store.ts'
import { throttled } from '../../internal/logger.ts'
import { isPromise, type MaybePromise, measure } from '../../internal/maybe-promise.ts'
import { maxWaitMs, within } from '../../internal/timers.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  AttemptResult,
  CloseReport,
  ImmediateResult,
  InboxHost,
} from '../inbox.ts'
import type { InboxStats } from '../reading.ts'
import { MemoryInbox, type MemorySettings } from './inbox.ts'
import { type EarlierAttempts, Job, JobAttempt, type JobEnd } from './job.ts'

/** Failed events whose completed handlers are remembered. */
const maxFailed = 10_000

type Answer = Claim | 'overloaded'

/** An event that the store is still asked about. */
interface Claiming {
  readonly size: number
  readonly answer: Promise<Answer>
}

/** An event that has ended here, which the store still has to record or release. */
interface Recording {
  readonly accepted: AcceptedEvent
  /** `false`: the inbox closed first. */
  readonly ended: Promise<boolean>
  readonly end: (isRecorded: boolean) => void
}

/**
 * An inbox in memory that claims each event in an idempotency store, so that no other process with the store handles it.
 * For `ack: 'handled'` too: an event whose one attempt failed is released, so that the sender's retry is handled.
 */
export class ClaimingInbox extends MemoryInbox {
  readonly #claims: Claims
  readonly #measured: InboxHost['measured']
  readonly #claiming = new Map<string, Claiming>()
  readonly #recording = new Map<string, Recording>()
  /** Of both (bytes). */
  #bytes = 0
  #isOver = false
  /** The results of the events that are handled now. */
  readonly #immediate = new Map<string, Promise<ImmediateResult>>()
  readonly #failed = new LRUCache<string, EarlierAttempts>({ max: maxFailed })

  constructor(host: InboxHost, settings: MemorySettings, store: Pick<IdempotencyStore, 'claims'>, leaseMs: number) {
    super(host, settings)
    const { logger, measured } = host
    this.#measured = measured
    this.#claims = store.claims({
      leaseMs,
      logger,
      onLost: (key) => this.#leaseLost(key),
      onEnd: (key) => this.#leaseEnded(key),
    })
  }

  override accept(
    accepted: AcceptedEvent,
    { waitUntil }: AcceptOptions = {},
    earlier?: EarlierAttempts,
  ): MaybePromise<Acceptance> {
    const { key } = accepted.event
    // Until the claim is answered, the first delivery may still fail, so its duplicates wait for it.
    const claiming = this.#claiming.get(key)
    if (claiming !== undefined) return claiming.answer.then(toDuplicate)
    if (this.holds(key)) return 'duplicate'
    let answer: MaybePromise<Answer> | undefined
    // Before the claim: if it throws, nothing was accepted.
    waitUntil?.(Promise.resolve().then(() => this.#ended(key, answer)))
    answer = this.#claim(accepted, earlier)
    return isPromise(answer) ? answer.then(toAcceptance) : toAcceptance(answer)
  }

  /** Never rejects: the sender is told of a failed claim. */
  async #ended(key: string, answer: MaybePromise<Answer> | undefined): Promise<unknown> {
    const said = await Promise.resolve(answer).catch(() => {})
    return said === 'claimed' ? this.#waitForEnd(key) : said
  }

  handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const { key } = accepted.event
    const known = this.#immediate.get(key)
    if (known !== undefined) return known
    const result = this.#handleNow(accepted).finally(() => this.#immediate.delete(key))
    this.#immediate.set(key, result)
    return result
  }

  async #handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const { key } = accepted.event
    if (!this.holds(key)) {
      const answer = await this.#claim(accepted, this.#failed.get(key))
      if (answer !== 'claimed') return answer === 'done' ? 'duplicate' : answer
    }
    return this.#waitForEnd(key)
  }

  /** How an unfinished event ended, once the store knows. */
  async #waitForEnd(key: string): Promise<JobEnd> {
    const end = await this.jobs.get(key)?.ended()
    return (await this.#recording.get(key)?.ended) === false ? 'closing' : (end ?? 'handled')
  }

  /** `claimed`: the event is in its lane. */
  #claim(accepted: AcceptedEvent, earlier?: EarlierAttempts): MaybePromise<Answer> {
    this.closing.checkOpen()
    // Before the claim: others must not see one that is then withdrawn.
    if (this.isFull(this.#claiming.size + this.#recording.size, this.#bytes)) return 'overloaded'
    const { event } = accepted
    const claim = measure(this.#measured, 'claim', () => this.#claims.claim(event.key))
    if (!isPromise(claim)) return this.#claimed(accepted, claim, earlier)
    const claiming = { size: sizeOf(event), answer: this.#answered(accepted, claim, earlier) }
    this.#bytes += claiming.size
    this.#claiming.set(event.key, claiming)
    return claiming.answer
  }

  async #answered(accepted: AcceptedEvent, claim: Promise<Claim>, earlier?: EarlierAttempts): Promise<Claim> {
    const { key } = accepted.event
    try {
      return this.#claimed(accepted, await claim, earlier)
    } finally {
      this.#bytes -= this.#claiming.get(key)?.size ?? 0
      this.#claiming.delete(key)
    }
  }

  #claimed(accepted: AcceptedEvent, claim: Claim, earlier?: EarlierAttempts): Claim {
    if (this.#isOver) {
      // The sender gets 503; its retry may reach another process.
      void this.#claims.release(accepted.event.key)
      throw new WebhookError('closing', 'the inbox is closing')
    }
    if (claim === 'claimed') this.take(new Job(accepted, earlier))
    return claim
  }

  protected override async attempt(job: Job): Promise<AttemptResult> {
    await this.#claims.untilRenewed?.(job.key)
    // Its lease may have been lost, or the inbox may have closed.
    if (job.hasEnded) return stopped
    const attempt = new JobAttempt(job, this.engine, () => this.#claims.isOver?.(job.key) === true)
    const result = await super.attempt(job, attempt)
    if (job.hasEnded || result.status === 'done') return result
    if (this.#immediate.has(job.key)) this.#fail(job, result.completed)
    else if (result.status === 'retry' && attempt.aborted) {
      // The lease expired. The job keeps its turn, and goes on unless another process has it.
      job.completed = result.completed
      return this.attempt(job)
    }
    return result
  }

  /** Ends the one attempt at an event that is handled now. The sender's retry skips the handlers that succeeded. */
  #fail(job: Job, completed: readonly string[]): void {
    this.#failed.set(job.key, { attempts: job.number, completed })
    this.#record(job, (released) => void this.#claims.release(job.key).then(released))
    this.jobs.end(job, 'failed')
  }

  protected override remember(job: Job): void {
    this.#failed.delete(job.key)
    this.#record(job, (recorded) => this.#claims.complete(job.key, recorded))
  }

  /** @param tell tells the store, and calls back once it knows */
  #record({ key, accepted, size }: Job, tell: (done: () => void) => void): void {
    let resolve: (isRecorded: boolean) => void = () => {}
    const ended = new Promise<boolean>((settle) => {
      resolve = settle
    })
    const end = (isRecorded: boolean) => {
      if (this.#recording.delete(key)) this.#bytes -= size
      resolve(isRecorded)
    }
    this.#recording.set(key, { accepted, ended, end })
    this.#bytes += size
    tell(() => end(true))
  }

  protected override holds(key: string): boolean {
    return super.holds(key) || this.#recording.has(key)
  }

  override stats(): InboxStats {
    const { running, ...others } = super.stats()
    return { ...others, running: running + this.#recording.size }
  }

  #leaseLost(key: string): void {
    const job = this.jobs.get(key)
    if (job === undefined) return
    throttled(this.logger).warn({ key }, 'the lease of the event was lost; another process handles it')
    job.stop(leaseLost())
    this.engine.lost(job)
    this.jobs.end(job, 'in-progress')
  }

  /** Stops the attempt: another process may have the event now. The next attempt waits for the claim. */
  #leaseEnded(key: string): void {
    const job = this.jobs.get(key)
    if (job?.state === 'running') job.attempt?.abort(leaseLost())
  }

  protected override async end(timeoutMs: number): Promise<CloseReport> {
    const startedAt = performance.now()
    const leftMs = () => Math.max(0, timeoutMs - (performance.now() - startedAt))
    const inTime = (ended: readonly Promise<unknown>[]) =>
      within(Math.min(leftMs(), maxWaitMs), Promise.allSettled(ended), () => {})
    this.retryNow()
    await inTime(Array.from(this.#claiming.values(), ({ answer }) => answer))
    this.#isOver = true
    const { unfinished } = await super.end(leftMs())
    await inTime(Array.from(this.#recording.values(), ({ ended }) => ended))
    const unrecorded = [...this.#recording.values()]
    // Let the leases expire instead of releasing them: a handler may ignore its signal and still be running.
    this.#claims.stop()
    for (const { end } of unrecorded) end(false)
    return {
      unfinished: [...unfinished, ...unrecorded.map(({ accepted }) => ({ ...accepted, state: 'running' as const }))],
    }
  }
}

const stopped: AttemptResult = Object.freeze({ status: 'retry', delayMs: 0, completed: [], failures: [] })

const leaseLost = () => new WebhookError('lease_lost', 'the lease of the event was lost')

const toDuplicate = (answer: Answer): Acceptance => (answer === 'claimed' ? 'duplicate' : toAcceptance(answer))

function toAcceptance(answer: Answer): Acceptance {
  // The other process may crash before it acknowledges, so the sender must send the event again.
  if (answer === 'in-progress') throw new WebhookError('in_progress', 'another process is accepting the event')
  return answer === 'claimed' ? 'accepted' : answer === 'done' ? 'duplicate' : answer
}
