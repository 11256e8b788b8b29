import type { Logger } from '../../internal/logger.ts'
import { sleep } from '../../internal/timers.ts'
import type { SqlAttempt } from './attempt.ts'
import type { Database } from './database.ts'
import type { HeldLane } from './lane.ts'
import { FailureLog } from './periodic-task.ts'

/** Delay before a count that failed is repeated (ms). */
const retryMs = 100

export interface CrashCountsOptions {
  readonly database: Pick<Database, 'run' | 'steps' | 'failure'>
  readonly logger: Logger
  readonly lost: (lane: HeldLane) => void
}

/** Counts suspects before they start: if the process dies, the event that is counted was the cause. */
export class CrashCounts {
  readonly #options: CrashCountsOptions
  readonly #log: FailureLog

  constructor(options: CrashCountsOptions) {
    this.#options = options
    this.#log = new FailureLog(options.logger, options.database, 'the inbox could not count an event that runs alone')
  }

  /** Resolves when the count is committed, the lane is lost or the attempt is aborted. */
  count(attempt: SqlAttempt): Promise<void> {
    const { crashes } = attempt.stored
    return this.#set(attempt, crashes, crashes + 1)
  }

  /** Takes back the count of an attempt that did not end here, and so has crashed nothing. */
  async uncount(attempt: SqlAttempt): Promise<void> {
    const { crashes } = attempt.stored
    if (attempt.isCounted) await this.#set(attempt, crashes + 1, crashes)
  }

  async #set(attempt: SqlAttempt, from: number, to: number): Promise<void> {
    const { database, logger, lost } = this.#options
    const { media, turn, next } = attempt.lane
    const isBack = to < from
    logger.debug(
      { lane: media, turn, event: next?.id },
      isBack ? 'takes back the count of an event' : 'counts an event before it runs alone',
    )
    while (attempt.lane.state !== 'lost') {
      try {
        const isOurs = await database.run(database.steps.count(attempt, from, to))
        this.#log.succeeded()
        attempt.isCounted = !isBack
        if (!isOurs) lost(attempt.lane)
        return
      } catch (error) {
        if (attempt.aborted) return
        this.#log.failed(error)
        await sleep(retryMs)
      }
    }
  }
}
