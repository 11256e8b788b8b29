import { sizeOf } from '../../events/json.ts'
import type { Claim } from '../../idempotency/store.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Timer } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, ImmediateResult, ParkedRun } from '../inbox.ts'
import type { EventRecord, FailedAttempt, HandlerFailure } from '../reading.ts'
import type { LaneJob } from './lanes.ts'
import { awaitedBy, withFailure } from './stored.ts'

/** Attempts at an event before it became this job. Handlers that succeeded don't run again. */
export interface EarlierAttempts {
  readonly attempts: number
  readonly completed: readonly string[]
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** Waiting since (ms since the epoch), if it was replayed or is due for a retry. */
  readonly since?: number
  /** Releases, if other processes may get the event. */
  readonly releases?: number | undefined
}

/**
 * How a job ended.
 *
 * - `handled`, `dead-lettered`: recorded.
 * - `retried`: the retry is recorded, or the event was only released. Any process may claim it.
 * - `failed`: its claim or its `handleNow` attempt failed.
 * - `lost`: this process no longer holds the event.
 * - `duplicate`, `in-progress`: the idempotency store's answer.
 * - `closing`: the inbox closed first.
 */
export type JobEnd = Exclude<ImmediateResult, 'overloaded'> | 'dead-lettered' | 'retried' | 'lost'

const none: EarlierAttempts = { attempts: 0, completed: [] }

/** An accepted event in this process, from acceptance, load or claim until it is settled. */
export class Job implements LaneJob {
  readonly key: string
  readonly lane: string
  next: LaneJob | undefined
  readonly accepted: AcceptedEvent
  readonly size: number
  readonly once: boolean
  /** `recording`: its handlers have ended, but the result is not recorded yet. */
  state: 'claiming' | 'waiting' | 'running' | 'retrying' | 'recording' = 'claiming'
  /** Number of the current or next attempt. */
  number: number
  completed: readonly string[]
  failedAttempts: readonly FailedAttempt[]
  attempt: JobAttempt | undefined
  claim: Promise<Claim> | undefined
  retryTimer: Timer | undefined
  /** Waiting or running since, or due at while `retrying` (ms since the epoch). */
  since: number
  hasEnded = false
  /** How often its event was released before. */
  readonly releases: number
  #onEnd: ((end: JobEnd) => void)[] | undefined

  /** `once`: a single attempt, whose result a caller awaits. `size`: memory of its event (bytes). */
  constructor(accepted: AcceptedEvent, earlier = none, once = false, size = sizeOf(accepted.event)) {
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.size = size
    this.once = once
    this.since = earlier.since ?? accepted.receivedAt.getTime()
    this.number = earlier.attempts + 1
    this.completed = earlier.completed
    this.failedAttempts = earlier.failedAttempts ?? []
    this.releases = earlier.releases ?? 0
  }

  get isParked(): boolean {
    return this.attempt?.parked !== undefined
  }

  transactionOf(_attempt: JobAttempt): Attempt['transaction'] {
    return undefined
  }

  /** True while its lease has expired by this process's clock. */
  get isOver(): boolean {
    return false
  }

  get owesNothing(): boolean {
    return false
  }

  /** Begins the next attempt. It keeps the number of an aborted one it replaces. */
  begin(): JobAttempt<this> {
    const attempt = new JobAttempt(this)
    this.attempt = attempt
    return attempt
  }

  /** Moves on to the next attempt, with a new number unless `counts` is `false`. */
  nextAttempt(completed: readonly string[], failures: readonly HandlerFailure[], counts?: false): void {
    this.failedAttempts = this.failedWith(failures)
    this.number += Number(counts !== false)
    this.completed = completed
    this.attempt = undefined
  }

  failedWith(failures: readonly HandlerFailure[]): readonly FailedAttempt[] {
    return failures.length === 0 ? this.failedAttempts : withFailure(this.failedAttempts, this.number, failures)
  }

  /** The state to show. While its result is being recorded, the job still counts as running. */
  get shownState(): 'waiting' | 'running' | 'retrying' {
    const { state } = this
    if (state === 'recording') return 'running'
    return state === 'claiming' ? 'waiting' : state
  }

  get running(): Pick<EventRecord, 'startedAt' | 'handler'> {
    const handler = this.attempt?.run?.handler
    return { startedAt: new Date(this.since), ...(handler !== undefined && { handler }) }
  }

  record(): EventRecord {
    const { key, type, mediaId } = this.accepted.event
    const { shownState: state, failedAttempts } = this
    return {
      ...this.accepted,
      ...awaitedBy(this.accepted.event),
      key,
      type,
      mediaId,
      state,
      attempts: state === 'running' ? this.number : this.number - 1,
      completed: this.completed,
      failedAttempts,
      ...(state === 'running' && this.running),
      ...(state === 'retrying' && { dueAt: new Date(this.since) }),
    }
  }

  stop(reason: Error): void {
    clearTimeout(this.retryTimer)
    this.attempt?.abort(reason)
  }

  ended(): Promise<JobEnd> {
    return new Promise((resolve) => {
      this.#onEnd ??= []
      this.#onEnd.push(resolve)
    })
  }

  /** Resolves when the job ends, with the outcome for `handleNow` and `waitUntil`. */
  result(): Promise<ImmediateResult> {
    return this.ended().then((end) => (end === 'dead-lettered' || end === 'retried' || end === 'lost' ? 'failed' : end))
  }

  end(end: JobEnd): void {
    this.hasEnded = true
    for (const resolve of this.#onEnd ?? []) resolve(end)
    this.#onEnd = undefined
  }
}

/** Lends the slots of waiting attempts to others. */
export interface Parking<EachJob extends Job> {
  /** Returns false if too many are parked. */
  park(job: EachJob): boolean
  unpark(job: EachJob): void
}

export class JobAttempt<EachJob extends Job = Job> extends LazyAbort implements Attempt {
  readonly job: EachJob
  readonly number: number
  readonly completed: readonly string[]
  succeeded: Attempt['succeeded']
  run: Attempt['run']
  isPartial = false
  isElsewhere = false
  declare isPaused: Attempt['isPaused']
  declare uncounted: Attempt['uncounted']
  declare parking: Parking<EachJob> | undefined
  declare parked: ParkedRun | undefined
  /** Owed handlers that no process has. */
  missing: readonly string[] = []

  constructor(job: EachJob) {
    super()
    this.job = job
    this.number = job.number
    this.completed = job.completed
  }

  /** Checks the clock: after a suspension, callers may run before the timer that aborts attempts. */
  override get aborted(): boolean {
    return super.aborted || this.job.isOver
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.parked?.abandon()
    this.unpark()
  }

  park(run: ParkedRun): boolean {
    if (!this.parking?.park(this.job)) return false
    this.parked = run
    return true
  }

  unpark(): void {
    if (this.parked !== undefined) this.parking?.unpark(this.job)
  }

  get failures(): Attempt['failures'] {
    return this.job.failedAttempts.at(-1)?.failures
  }

  get owesNothing(): boolean {
    return this.job.owesNothing
  }

  get transaction(): Attempt['transaction'] {
    return this.job.transactionOf(this)
  }
}
