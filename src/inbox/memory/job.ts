import { sizeOf } from '../../events/json.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import { maxWaitMs, type Timer } from '../../internal/timers.ts'
import type { RetryResult } from '../engine/attempts.ts'
import { awaitedBy, withFailure } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
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
 * - `handled`: every handler has finished.
 * - `failed`: it is a dead letter now. With `ack: 'handled'`, its one attempt failed.
 * - `in-progress`: another process has it, since its lease was lost.
 * - `closing`: the inbox closed first.
 */
export type JobEnd = 'handled' | 'failed' | 'in-progress' | 'closing'

const none: EarlierAttempts = { attempts: 0, completed: [] }

/**
 * - `waiting`: for its turn in its lane, and then for a slot.
 * - `running`: an attempt has a slot. Again in the same slot if the lease of the one before had expired.
 * - `limited`: the attempt waits for the limit of a handler, without a slot.
 * - `retrying`: waits for its next attempt.
 */
export type JobState = 'waiting' | 'running' | 'limited' | 'retrying' | 'ended'

/** What a job can become. Any can end: its lease can be lost, and the inbox can close. */
export const transitions: Readonly<Record<JobState, readonly JobState[]>> = {
  waiting: ['running', 'ended'],
  running: ['running', 'limited', 'retrying', 'ended'],
  limited: ['running', 'ended'],
  retrying: ['waiting', 'ended'],
  ended: [],
}

/** An accepted event in this process, until it is settled. */
export class Job {
  readonly key: string
  readonly lane: string
  /** The job behind it in its lane. */
  next: Job | undefined
  readonly accepted: AcceptedEvent
  readonly size: number
  /** Number of the current or next attempt. */
  number: number
  completed: readonly string[]
  failedAttempts: readonly FailedAttempt[]
  attempt: JobAttempt | undefined
  /** Waiting or running since, or due at while `retrying` (ms since the epoch). */
  since: number
  #state: JobState = 'waiting'
  #retryTimer: Timer | undefined
  #onEnd: ((end: JobEnd) => void)[] | undefined

  constructor(accepted: AcceptedEvent, earlier = none) {
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.size = sizeOf(accepted.event)
    this.since = earlier.since ?? accepted.receivedAt.getTime()
    this.number = earlier.attempts + 1
    this.completed = earlier.completed
    this.failedAttempts = earlier.failedAttempts ?? []
  }

  get state(): JobState {
    return this.#state
  }

  get hasEnded(): boolean {
    return this.#state === 'ended'
  }

  /** Its retry is due. */
  wait(): void {
    this.#become('waiting')
    clearTimeout(this.#retryTimer)
  }

  start(attempt: JobAttempt): void {
    this.#become('running')
    this.since = Date.now()
    this.attempt = attempt
  }

  /** A handler of its attempt is at its limit, until `goOn`. */
  limit(): void {
    this.#become('limited')
  }

  goOn(): void {
    this.#become('running')
    this.since = Date.now()
  }

  /** Moves on to the next attempt, with a new number unless `counts` is `false`. Calls `due` when it is. */
  retry({ completed, failures, counts, delayMs }: RetryResult, due: () => void): void {
    this.#become('retrying')
    this.failedAttempts = this.failedWith(failures)
    this.number += Number(counts !== false)
    this.completed = completed
    this.attempt = undefined
    this.since = Date.now() + delayMs
    this.#retryTimer = setTimeout(due, Math.min(delayMs, maxWaitMs))
  }

  #become(state: JobState): void {
    if (!transitions[this.#state].includes(state)) throw new Error(`a job that is ${this.#state} can't be ${state}`)
    this.#state = state
  }

  failedWith(failures: readonly HandlerFailure[]): readonly FailedAttempt[] {
    return failures.length === 0 ? this.failedAttempts : withFailure(this.failedAttempts, this.number, failures)
  }

  /** The state to show. A job at a limit waits. */
  get shownState(): 'waiting' | 'running' | 'retrying' {
    const { state } = this
    return state === 'retrying' || state === 'running' ? state : 'waiting'
  }

  shown(): EventRecord {
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
    clearTimeout(this.#retryTimer)
    this.attempt?.abort(reason)
  }

  /** Resolves when the job ends. */
  ended(): Promise<JobEnd> {
    return new Promise((resolve) => {
      this.#onEnd ??= []
      this.#onEnd.push(resolve)
    })
  }

  end(end: JobEnd): void {
    if (!this.hasEnded) this.#become('ended')
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
  readonly #isOver: (() => boolean) | undefined

  /** @param isOver tells whether the lease has expired by the clock: another process may have the event */
  constructor(job: Job, slots: Slots, isOver?: () => boolean) {
    super()
    this.#isOver = isOver
    this.number = job.number
    this.completed = job.completed
    this.#job = job
    this.#slots = slots
  }

  /** Checks the clock: after a suspension, callers may run before the timer that aborts attempts. */
  override get aborted(): boolean {
    return super.aborted || this.#isOver?.() === true
  }

  whileWaiting(turn: Promise<void>): Promise<void> {
    return this.#slots.whileWaiting(this.#job, turn)
  }

  get failures(): Attempt['failures'] {
    return this.#job.failedAttempts.at(-1)?.failures
  }
}
