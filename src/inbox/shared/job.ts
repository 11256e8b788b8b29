import type { Claim } from '../../idempotency/store.ts'
import type { LaneJob } from '../../internal/lanes.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Timer } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, ImmediateResult } from '../inbox.ts'

class JobAttempt extends LazyAbort implements Attempt {
  readonly number: number
  readonly completed: readonly string[]
  succeeded: Attempt['succeeded']

  constructor(number: number, completed: readonly string[]) {
    super()
    this.number = number
    this.completed = completed
    this.succeeded = undefined
  }
}

/** What was done of an event before it was taken in again. */
export interface Before {
  readonly attempts: number
  /** Names of the handlers that succeeded, which are left out. */
  readonly completed: readonly string[]
}

/** How an event is taken in. */
export interface JobOptions {
  /** Whether it gets one attempt only, whose result somebody waits for. */
  readonly once?: boolean
  readonly before?: Before | undefined
  /** The row of the file that holds it, where one does. */
  readonly row?: number
  /** How often its attempt was begun before, where it was read from a file. */
  readonly begun?: number
}

/** An event between its acceptance and its end. */
export class Job implements LaneJob<Job> {
  readonly key: string
  readonly lane: string
  next: Job | undefined
  inItsRequest: boolean
  begin: (() => void) | undefined
  readonly accepted: AcceptedEvent
  readonly once: boolean
  readonly row: number
  begun: number | undefined
  /** `recording`: its handlers are done, and that has yet to be written down. */
  state: 'claiming' | 'waiting' | 'running' | 'retrying' | 'recording' = 'claiming'
  attempt: JobAttempt
  /** The answer to the claim, while it is under way. */
  claim: Promise<Claim> | undefined
  retryTimer: Timer | undefined
  hasEnded = false
  #waiting: ((result: ImmediateResult) => void)[] | undefined

  constructor(accepted: AcceptedEvent, { once = false, before = nothing, row = 0, begun }: JobOptions = {}) {
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.once = once
    this.row = row
    this.begun = begun
    this.inItsRequest = once
    this.attempt = new JobAttempt(before.attempts + 1, before.completed)
  }

  nextAttempt(completed: readonly string[]): void {
    this.attempt = new JobAttempt(this.attempt.number + 1, completed)
    this.begun = undefined
  }

  /** Stops what runs and what would run again. */
  stop(reason: Error): void {
    clearTimeout(this.retryTimer)
    this.attempt.abort(reason)
  }

  /** Resolves at the job's end. */
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

const nothing: Before = { attempts: 0, completed: [] }
