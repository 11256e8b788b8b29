import { sizeOf } from '../../events/json.ts'
import type { Claim, Claims } from '../../idempotency/store.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Timer } from '../../internal/timers.ts'
import { awaitedBy, withFailure } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt, ImmediateResult } from '../inbox.ts'
import type { EventRecord, FailedAttempt, HandlerFailure } from '../reading.ts'

/** Attempts at an event before it became this job. Handlers that succeeded don't run again. */
export interface EarlierAttempts {
  readonly attempts: number
  readonly completed: readonly string[]
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** When it was replayed (ms since the epoch). */
  readonly since?: number
}

/**
 * How a job ended.
 *
 * - `handled`, `dead-lettered`: recorded.
 * - `failed`: its claim or its `handleNow` attempt failed.
 * - `duplicate`, `in-progress`: the idempotency store's answer.
 * - `closing`: the inbox closed first.
 */
export type JobEnd = Exclude<ImmediateResult, 'overloaded'> | 'dead-lettered'

const none: EarlierAttempts = { attempts: 0, completed: [] }

/** An accepted event in this process, until it is settled. */
export class Job {
  readonly key: string
  readonly lane: string
  /** The job behind it in its lane. */
  next: Job | undefined
  readonly accepted: AcceptedEvent
  readonly size: number
  /** A single attempt, whose result a caller awaits. */
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
  readonly #claims: Claims
  #onEnd: ((end: JobEnd) => void)[] | undefined

  constructor(accepted: AcceptedEvent, claims: Claims, earlier = none, once = false) {
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.size = sizeOf(accepted.event)
    this.once = once
    this.since = earlier.since ?? accepted.receivedAt.getTime()
    this.number = earlier.attempts + 1
    this.completed = earlier.completed
    this.failedAttempts = earlier.failedAttempts ?? []
    this.#claims = claims
  }

  /** True while the lease of its claim has expired by this process's clock. */
  get isOver(): boolean {
    return this.#claims.isOver?.(this.key) === true
  }

  /** Resolves once an expired lease is renewed or lost. `undefined` if it has not expired. */
  renewed(): Promise<undefined> | undefined {
    return this.#claims.renewed?.(this.key)
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

  record(): EventRecord {
    const { accepted, shownState: state, number, completed, failedAttempts, since } = this
    const { key, type, mediaId } = accepted.event
    const handler = this.attempt?.run?.handler
    return {
      ...{ ...accepted, ...awaitedBy(accepted.event), key, type, mediaId, state, completed, failedAttempts },
      attempts: state === 'running' ? number : number - 1,
      ...(state === 'running' && { startedAt: new Date(since), ...(handler !== undefined && { handler }) }),
      ...(state === 'retrying' && { dueAt: new Date(since) }),
    }
  }

  stop(reason: Error): void {
    clearTimeout(this.retryTimer)
    this.attempt?.abort(reason)
  }

  /** Resolves when the job ends, with the outcome for `handleNow` and `waitUntil`. */
  async result(): Promise<ImmediateResult> {
    const end = await new Promise<JobEnd>((resolve) => {
      this.#onEnd ??= []
      this.#onEnd.push(resolve)
    })
    return end === 'dead-lettered' ? 'failed' : end
  }

  end(end: JobEnd): void {
    this.hasEnded = true
    for (const resolve of this.#onEnd ?? []) resolve(end)
    this.#onEnd = undefined
  }
}

/** Lends the slots of waiting attempts to others. */
export interface Slots {
  whileWaiting(job: Job, turn: Promise<void>): Promise<void>
}

export class JobAttempt extends LazyAbort implements Attempt {
  readonly number: number
  readonly completed: readonly string[]
  run: Attempt['run']
  readonly #job: Job
  readonly #slots: Slots

  constructor(job: Job, slots: Slots) {
    super()
    this.number = job.number
    this.completed = job.completed
    this.#job = job
    this.#slots = slots
  }

  /** Checks the clock: after a suspension, callers may run before the timer that aborts attempts. */
  override get aborted(): boolean {
    return super.aborted || this.#job.isOver
  }

  whileWaiting(turn: Promise<void>): Promise<void> {
    return this.#slots.whileWaiting(this.#job, turn)
  }

  get failures(): Attempt['failures'] {
    return this.#job.failedAttempts.at(-1)?.failures
  }
}
