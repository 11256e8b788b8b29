import { WebhookError } from '../../errors.ts'
import type { Claim } from '../../idempotency/store.ts'
import { ChurnMap } from '../../internal/churn-map.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import { longestWaitMs, type Timer } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, ImmediateResult, UnfinishedEvent } from '../inbox.ts'
import type { EventRecord, FailedAttempt, HandlerFailure, InboxStats } from '../reading.ts'
import { withFailure } from './failed-attempts.ts'
import type { LaneJob } from './lanes.ts'

/** The attempts that were made at an event before it became this job. */
export interface EarlierAttempts {
  readonly attempts: number
  /** Names of the handlers that succeeded, which do not run again. */
  readonly completed: readonly string[]
  /** The newest ones that failed. */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** The time since which it waits, in ms since the epoch, if it was replayed or a retry is due. */
  readonly since?: number
}

const none: EarlierAttempts = { attempts: 0, completed: [] }

/** An event from its acceptance to its end, and its current attempt. */
export class Job extends LazyAbort implements LaneJob, Attempt {
  readonly key: string
  readonly lane: string
  next: LaneJob | undefined
  inItsRequest: boolean
  startInRequest: (() => void) | undefined
  aliveUntil = 0
  turn: number | undefined
  readonly accepted: AcceptedEvent
  readonly once: boolean
  /** `recording`: its handlers are done, and the inbox has yet to record that. */
  state: 'claiming' | 'waiting' | 'running' | 'retrying' | 'recording' = 'claiming'
  number: number
  completed: readonly string[]
  failedAttempts: readonly FailedAttempt[]
  succeeded: Attempt['succeeded']
  /** The answer to the claim, while it is pending. */
  claim: Promise<Claim> | undefined
  retryTimer: Timer | undefined
  /** The time since which it waits to start, or of its next attempt while it is `retrying`, in ms since the epoch. */
  since: number
  hasEnded = false
  #waiting: ((result: ImmediateResult) => void)[] | undefined

  /** @param once `true` for a job that gets one attempt, whose result a caller waits for */
  constructor(accepted: AcceptedEvent, earlier = none, once = false) {
    super()
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.once = once
    this.inItsRequest = once
    this.since = earlier.since ?? accepted.receivedAt.getTime()
    this.number = earlier.attempts + 1
    this.completed = earlier.completed
    this.failedAttempts = earlier.failedAttempts ?? []
  }

  /** Counts the next attempt, after one that has failed, unless `counts` is `false`. */
  nextAttempt(completed: readonly string[], failures: readonly HandlerFailure[], counts?: false): void {
    this.failedAttempts = this.failedWith(failures)
    this.number += Number(counts !== false)
    this.completed = completed
  }

  /** Prepares the attempt that replaces one which was aborted, and does not count. */
  again(completed: readonly string[]): void {
    this.reset()
    this.completed = completed
  }

  /** Lists the attempts that failed, the current one included. */
  failedWith(failures: readonly HandlerFailure[]): readonly FailedAttempt[] {
    return failures.length === 0 ? this.failedAttempts : withFailure(this.failedAttempts, this.number, failures)
  }

  /** Its state for those who ask the inbox: while its end is recorded, it still holds its place. */
  get shownState(): 'waiting' | 'running' | 'retrying' {
    const { state } = this
    if (state === 'recording') return 'running'
    return state === 'claiming' ? 'waiting' : state
  }

  /** Shows it as an event of the inbox. */
  record(): EventRecord {
    const { key, type, mediaId } = this.accepted.event
    const { shownState: state, failedAttempts } = this
    return {
      ...this.accepted,
      key,
      type,
      mediaId,
      state,
      attempts: state === 'running' ? this.number : this.number - 1,
      completed: this.completed,
      failedAttempts,
      ...(state === 'retrying' && { dueAt: new Date(this.since) }),
    }
  }

  /** Aborts the current attempt, and cancels the next one. */
  stop(reason: Error): void {
    clearTimeout(this.retryTimer)
    this.abort(reason)
  }

  /** Resolves when the job ends. */
  ended(): Promise<ImmediateResult> {
    return new Promise((resolve) => {
      this.#waiting ??= []
      this.#waiting.push(resolve)
    })
  }

  end(result: ImmediateResult): void {
    this.hasEnded = true
    for (const resolve of this.#waiting ?? []) resolve(result)
    this.#waiting = undefined
  }
}

/** Every event that has not ended, by key. A duplicate of one of them never reaches the store. */
export class Jobs<EachJob extends Job = Job> {
  readonly #byKey = new ChurnMap<string, EachJob>()
  #onIdle: (() => void) | undefined

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): EachJob | undefined {
    return this.#byKey.get(key)
  }

  add(job: EachJob): void {
    this.#byKey.set(job.key, job)
  }

  *[Symbol.iterator](): IterableIterator<EachJob> {
    for (const [, job] of this.#byKey) yield job
  }

  /** Ends a job, with the result that its callers wait for. */
  end(job: EachJob, result: ImmediateResult): void {
    if (!job.hasEnded) this.#byKey.delete(job.key)
    job.end(result)
    if (this.#byKey.size === 0) this.#onIdle?.()
  }

  /** Resolves when no job is left, or after `timeoutMs`. */
  idle(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#byKey.size === 0) return resolve()
      const timer = setTimeout(resolve, Math.min(timeoutMs, longestWaitMs))
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Stops all jobs, or those in the given states, and returns the accepted ones. */
  release(states?: readonly Job['state'][]): readonly UnfinishedEvent[] {
    const unfinished: UnfinishedEvent[] = []
    for (const job of this) {
      const { state, shownState } = job
      if (states !== undefined && !states.includes(state)) continue
      job.stop(new WebhookError('closing', 'the inbox is closing'))
      if (state !== 'claiming') unfinished.push({ ...job.accepted, state: shownState })
      this.end(job, 'closing')
    }
    return unfinished
  }

  counts(): Omit<InboxStats, 'deadLetters'> {
    const counts = { waiting: 0, running: 0, retrying: 0 }
    let oldest: number | undefined
    for (const { shownState, since } of this) {
      counts[shownState]++
      if (shownState === 'waiting') oldest = Math.min(oldest ?? since, since)
    }
    return oldest === undefined ? counts : { ...counts, oldestWaitingAt: new Date(oldest) }
  }
}
