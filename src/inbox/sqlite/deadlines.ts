import type { Logger } from '../../internal/logger.ts'
import type { OutageLog } from '../../internal/outage-log.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { SqliteEvents } from '../sqlite-tables/events.ts'
import { eventsPerTurn } from '../sqlite-tables/load.ts'
import type { GroupCommit } from './commits.ts'

/** Maximum time of the timer, in ms: the machine can sleep, or its clock can be set. */
const longestMs = 60_000

/** The pause while the inbox is full, and after a failure, in ms. */
const pauseMs = 1_000

interface DeadlinesOptions {
  readonly events: SqliteEvents
  readonly commits: GroupCommit
  readonly logger: Logger
  readonly outage: OutageLog
  /** Returns the number of overdue events that the inbox has room for. */
  readonly room: () => number
  /** Called with the row of an overdue event that has been stored. */
  readonly onOverdue: (row: number) => void
}

/** Stores what is overdue as events, in the commits of the inbox. It has one timer, for the next deadline of the file. */
export class Deadlines {
  readonly #options: DeadlinesOptions
  #timer: Timer | undefined
  /** The time for which the timer is set, in ms since the epoch. */
  #at = Number.POSITIVE_INFINITY
  #isStopped = false

  constructor(options: DeadlinesOptions) {
    this.#options = options
  }

  /** Waits for a deadline, unless an earlier one comes first. */
  wait(at: number): void {
    if (this.#isStopped || at >= this.#at) return
    this.#at = at
    clearTimeout(this.#timer)
    const inMs = Math.min(Math.max(0, at - Date.now()), longestMs)
    this.#timer = setTimeout(() => void this.check(), inMs)
    unref(this.#timer)
  }

  /** Stores some of what is overdue, and waits for the next deadline. */
  async check(): Promise<void> {
    if (this.#isStopped) return
    this.#at = Number.POSITIVE_INFINITY
    try {
      await this.#storeDue()
    } catch (error) {
      if (this.#isStopped) return
      const { logger, outage } = this.#options
      outage.failed(() => logger.warn({ err: error }, 'the inbox could not hand over what is overdue yet'))
      this.wait(Date.now() + pauseMs)
    }
  }

  async #storeDue(): Promise<void> {
    const { events, commits, room, onOverdue } = this.#options
    const limit = Math.min(eventsPerTurn, room())
    if (limit > 0 && events.expectations.nextAt() <= Date.now())
      for (const row of await commits.add(() => events.acceptDue(limit))) onOverdue(row)
    this.wait(Math.max(events.expectations.nextAt(), limit > 0 ? 0 : Date.now() + pauseMs))
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
