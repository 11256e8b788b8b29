import type { Logger } from '../../internal/logger.ts'
import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { SqliteJob } from '../sqlite-tables/job.ts'

/** The time after which an object that has ended with work left is woken, in ms. */
const guardMs = 5_000

/** Maximum time that one alarm waits for work, in ms. The platform gives it 15 minutes. */
const longestMs = 600_000

/** The pause between two checks of the work, in ms. */
const pollMs = 100

/** The alarm waits for a retry or a deadline that is due within this time, in ms. */
const soonMs = 1_000

/**
 * The alarm of an object that is an inbox. While events are left or expected, one is set: it keeps the object in memory
 * while events are handled, wakes it for a retry or a deadline, and wakes it after a crash. `setAlarm` belongs to the
 * writes of its turn, so an event is never stored without its alarm.
 */
export class ObjectAlarm {
  readonly #storage: ObjectStorage
  readonly #jobs: Iterable<SqliteJob>
  readonly #isPaused: () => boolean
  readonly #storeDue: () => number
  readonly #loadMore: () => number
  readonly #logger: Logger
  /** The time for which it is set, in ms since the epoch. */
  #at: number | undefined
  /** The time of the next deadline, or an earlier one if that was ended. */
  #deadline = Number.POSITIVE_INFINITY

  /**
   * @param isPaused returns `true` while no event starts
   * @param storeDue makes events of what is overdue, and returns the time for which it has to be called next
   * @param loadMore loads events while there is room, and returns the number of those that are left
   */
  constructor(
    storage: ObjectStorage,
    jobs: Iterable<SqliteJob>,
    isPaused: () => boolean,
    storeDue: () => number,
    loadMore: () => number,
    logger: Logger,
  ) {
    this.#storage = storage
    this.#jobs = jobs
    this.#isPaused = isPaused
    this.#storeDue = storeDue
    this.#loadMore = loadMore
    this.#logger = logger
  }

  /** Takes a deadline, before `guard` or `update` sets the alarm. */
  expect(deadline: number): void {
    this.#deadline = Math.min(this.#deadline, deadline)
  }

  /** Called when an event is stored. Brings forward an alarm that is set for a later retry or deadline. */
  guard(): void {
    const at = this.#isPaused() ? this.#deadline : Math.min(Date.now() + guardMs, this.#deadline)
    if (at === Number.POSITIVE_INFINITY) return
    if (this.#at === undefined || this.#at > at) this.#set(at)
  }

  /** Sets the alarm for what is left, and for what is expected. */
  update(): void {
    this.#passDeadline()
    const now = Date.now()
    let inMs = this.#deadline - now
    if (this.#loadMore() > 0 && !this.#isPaused()) inMs = Math.min(inMs, guardMs)
    for (const job of this.#active()) inMs = Math.min(inMs, isDue(job, now) ? guardMs : job.since - now)
    if (inMs !== Number.POSITIVE_INFINITY) this.#set(now + inMs)
    else this.clear()
  }

  /** Called when no event is left. Sets the alarm for what is expected, if anything is. */
  clear(): void {
    if (this.#deadline !== Number.POSITIVE_INFINITY) {
      if (this.#at !== this.#deadline) this.#set(this.#deadline)
    } else if (this.#at !== undefined) {
      this.#at = undefined
      this.#storage.deleteAlarm().catch((error) => this.#failed(error))
    }
  }

  /** Waits until what is due has been handled. */
  async ring(hasStopped: () => boolean): Promise<void> {
    // First of all: the platform gives up an alarm that fails a few times, and a crash is a failure.
    this.#set(Date.now() + guardMs)
    const endsAt = performance.now() + longestMs
    while (!hasStopped() && performance.now() < endsAt) {
      this.#passDeadline()
      this.#loadMore()
      if (!this.#hasDue()) break
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
    if (!hasStopped()) this.update()
  }

  #passDeadline(): void {
    if (this.#deadline <= Date.now()) this.#deadline = this.#storeDue()
  }

  #hasDue(): boolean {
    const now = Date.now()
    if (this.#deadline <= now + soonMs) return true
    for (const job of this.#active()) if (isDue(job, now)) return true
    return false
  }

  /** The jobs that can go on: while the inbox is paused, only those that run. */
  *#active(): Iterable<SqliteJob> {
    const isPaused = this.#isPaused()
    for (const job of this.#jobs) if (!isPaused || job.state === 'running' || job.state === 'recording') yield job
  }

  #set(at: number): void {
    this.#at = at
    this.#storage.setAlarm(Math.ceil(at)).catch((error) => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#at = undefined
    this.#logger.error({ err: error }, 'the inbox could not set its alarm')
  }
}

const isDue = ({ state, since }: SqliteJob, now: number): boolean => state !== 'retrying' || since <= now + soonMs
