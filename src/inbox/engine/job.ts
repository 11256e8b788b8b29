import { sizeOf } from '../../events/json.ts'
import type { Claim } from '../../idempotency/store.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Timer } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, ImmediateResult, ParkedRun } from '../inbox.ts'
import type { EventRecord, FailedAttempt, HandlerFailure } from '../reading.ts'
import type { LaneJob } from './lanes.ts'
import { awaitedBy, withFailure } from './stored.ts'

/** The earlier attempts at an event, before it became this job. */
export interface EarlierAttempts {
  readonly attempts: number
  /** Names of the succeeded handlers. They do not run again. */
  readonly completed: readonly string[]
  /** The newest failed attempts. */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** The time since which it waits, in ms since the epoch, if it was replayed or a retry is due. */
  readonly since?: number
}

/**
 * The end of a job.
 *
 * - `handled`, `dead-lettered`: this outcome is recorded.
 * - `retried`: the retry is recorded, or the event was only released. It waits until a process claims it.
 * - `failed`: its claim, or the one attempt of `handleNow`, failed.
 * - `lost`: this process no longer has the event.
 * - `duplicate`, `in-progress`: the idempotency store gave this answer.
 * - `closing`: the inbox closed first.
 */
export type JobEnd = Exclude<ImmediateResult, 'overloaded'> | 'dead-lettered' | 'retried' | 'lost'

const none: EarlierAttempts = { attempts: 0, completed: [] }

/** An accepted event in this process, from when it was accepted, loaded or claimed until it is settled. */
export class Job implements LaneJob {
  readonly key: string
  readonly lane: string
  next: LaneJob | undefined
  readonly accepted: AcceptedEvent
  /** The memory of its event, in bytes. */
  readonly size: number
  readonly once: boolean
  /** `recording`: its handlers are done, and the inbox has not recorded that yet. */
  state: 'claiming' | 'waiting' | 'running' | 'retrying' | 'recording' = 'claiming'
  /** The number of the current attempt, or of the next one. */
  number: number
  completed: readonly string[]
  failedAttempts: readonly FailedAttempt[]
  /** The current attempt. */
  attempt: JobAttempt | undefined
  /** The answer to the claim, while it is pending. */
  claim: Promise<Claim> | undefined
  retryTimer: Timer | undefined
  /** The time since which it waits to start or runs, or of its next attempt while it is `retrying`, in ms since the epoch. */
  since: number
  hasEnded = false
  /** The number of its earlier releases, if other processes may get it. */
  declare readonly releases?: number
  #onEnd: ((end: JobEnd) => void)[] | undefined

  /**
   * @param once `true` if the job gets one attempt, and a caller waits for the result
   * @param size the memory of its event, in bytes
   */
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
  }

  /** True while its attempt waits for the limit of a handler. */
  get isParked(): boolean {
    return this.attempt?.parked !== undefined
  }

  /** Returns the transaction of a handler, or `undefined` if the inbox has no database. */
  transactionOf(_attempt: JobAttempt): Attempt['transaction'] {
    return undefined
  }

  /** True from the end of its lease by the clock of this process until it is renewed. */
  get isOver(): boolean {
    return false
  }

  /** `true` if the event was accepted without a handler. */
  get owesNothing(): boolean {
    return false
  }

  /** Begins the next attempt. If it replaces an aborted attempt, it has the same number. */
  begin(): JobAttempt<this> {
    const attempt = new JobAttempt(this)
    this.attempt = attempt
    return attempt
  }

  /** Counts the next attempt after a failed one, unless `counts` is `false`. */
  nextAttempt(completed: readonly string[], failures: readonly HandlerFailure[], counts?: false): void {
    this.failedAttempts = this.failedWith(failures)
    this.number += Number(counts !== false)
    this.completed = completed
    this.attempt = undefined
  }

  /** Lists the failed attempts, the current one included. */
  failedWith(failures: readonly HandlerFailure[]): readonly FailedAttempt[] {
    return failures.length === 0 ? this.failedAttempts : withFailure(this.failedAttempts, this.number, failures)
  }

  /** Its state as the inbox shows it. While the inbox records its end, the job still holds its place. */
  get shownState(): 'waiting' | 'running' | 'retrying' {
    const { state } = this
    if (state === 'recording') return 'running'
    return state === 'claiming' ? 'waiting' : state
  }

  /** The handler that runs, and since when its attempt does. */
  get running(): Pick<EventRecord, 'startedAt' | 'handler'> {
    const handler = this.attempt?.run?.handler
    return { startedAt: new Date(this.since), ...(handler !== undefined && { handler }) }
  }

  /** Shows it as an event of the inbox. */
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

  /** Aborts the current attempt, and cancels the next one. */
  stop(reason: Error): void {
    clearTimeout(this.retryTimer)
    this.attempt?.abort(reason)
  }

  /** Resolves when the job ends. */
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

/** Gives the slots of attempts to others while they wait for a limit. */
export interface Parking<EachJob extends Job> {
  /** Returns false if there is no room for another. */
  park(job: EachJob): boolean
  /** Resumes the attempt of a parked job once a slot is free. */
  unpark(job: EachJob): void
}

/** One attempt at a job: each handler that has not completed runs once. The next attempt is another object. */
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
  /** The names of the owed handlers that no process has. */
  missing: readonly string[] = []

  constructor(job: EachJob) {
    super()
    this.job = job
    this.number = job.number
    this.completed = job.completed
  }

  /** A process that was suspended may ask before the timer that aborts its attempts. */
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
