import { LazyAbort } from '../dispatch/lazy-abort.ts'
import type { Claim } from '../idempotency/store.ts'
import type { Timer } from '../timers.ts'
import type { AcceptedEvent, Attempt, ImmediateResult } from './inbox.ts'
import type { LaneJob } from './lanes.ts'

class MemoryAttempt extends LazyAbort implements Attempt {
  readonly number: number
  readonly completed: readonly string[]

  constructor(number: number, completed: readonly string[]) {
    super()
    this.number = number
    this.completed = completed
  }
}

/** What was done of an event before it was taken in again. */
export interface Before {
  readonly attempts: number
  /** Names of the handlers that succeeded, which are left out. */
  readonly completed: readonly string[]
}

/** An event between its acceptance and its end. */
export class MemoryJob implements LaneJob<MemoryJob> {
  readonly key: string
  readonly lane: string
  next: MemoryJob | undefined
  inItsRequest: boolean
  begin: (() => void) | undefined
  readonly accepted: AcceptedEvent
  /** Whether it gets one attempt only, whose result somebody waits for. */
  readonly once: boolean
  /** `recording`: its handlers are done, and the store has yet to learn it. */
  state: 'claiming' | 'waiting' | 'running' | 'retrying' | 'recording' = 'claiming'
  attempt: MemoryAttempt
  /** The answer to the claim, while it is under way. */
  claim: Promise<Claim> | undefined
  retryTimer: Timer | undefined
  hasEnded = false
  #waiting: ((result: ImmediateResult) => void)[] | undefined

  constructor(accepted: AcceptedEvent, once: boolean, before: Before = { attempts: 0, completed: [] }) {
    this.key = accepted.event.key
    this.lane = accepted.event.mediaId
    this.accepted = accepted
    this.once = once
    this.inItsRequest = once
    this.attempt = new MemoryAttempt(before.attempts + 1, before.completed)
  }

  nextAttempt(completed: readonly string[]): void {
    this.attempt = new MemoryAttempt(this.attempt.number + 1, completed)
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
