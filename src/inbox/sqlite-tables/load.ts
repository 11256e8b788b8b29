import type { Logger } from '../../internal/logger.ts'
import type { Engine } from '../engine/engine.ts'
import type { Jobs } from '../engine/jobs.ts'
import type { InboxStats } from '../reading.ts'
import type { SqliteJob, Transactions } from './job.ts'
import type { Recovery } from './recovery.ts'
import { sinceOf, toJob, UnreadableEvent, waitOf } from './rows.ts'
import type { Commits, SqliteTables } from './storage.ts'

/** The number of events that are read from the file in one turn of the event loop: about a millisecond of work. */
export const eventsPerTurn = 50

export interface LoaderOptions {
  readonly file: SqliteTables
  readonly commits: Commits
  readonly jobs: Jobs<SqliteJob>
  readonly engine: Engine<SqliteJob>
  readonly recovery: Recovery
  readonly transactions: Transactions
  readonly logger: Logger
  /** Returns `true` once the inbox loads no more events. */
  readonly hasStopped: () => boolean
}

/** Loads events of the tables that are not in memory. */
export class Loader<Options extends LoaderOptions = LoaderOptions> {
  protected readonly options: Options
  /** The rows of unreadable events that were already reported. */
  readonly #unreadable = new Set<number>()

  constructor(options: Options) {
    this.options = options
  }

  /**
   * Loads an event, unless it cannot be parsed. That is reported once: the event stays in the file, and the others do
   * not wait for it. Throws if the file cannot be read.
   */
  protected loadReadable(row: number): SqliteJob | undefined {
    if (this.#unreadable.has(row)) return undefined
    try {
      return this.load(row)
    } catch (error) {
      if (!(error instanceof UnreadableEvent)) throw error
      this.#unreadable.add(row)
      this.options.logger.error({ row, err: error }, 'an event of the inbox cannot be read, and stays in its storage')
      return undefined
    }
  }

  /**
   * Loads an event. Returns `undefined` if it is in memory, or if it has ended since its row was listed. Throws if it
   * cannot be read.
   * @param add handles a due job
   */
  protected load(row: number, add = (job: SqliteJob) => this.options.recovery.add(job)): SqliteJob | undefined {
    const { file, commits, jobs, engine, transactions } = this.options
    const stored = file.events.get(row)
    if (stored === undefined) return undefined
    const job = toJob(stored, transactions)
    if (jobs.get(job.key) !== undefined) return undefined
    jobs.add(job)
    const { dueInMs, isTooLong } = waitOf(stored)
    if (dueInMs > 0) engine.addLater(job, dueInMs)
    else add(job)
    // If this fails, the next process does it.
    if (isTooLong) commits.add(() => file.events.bringForward(row)).catch(() => {})
    return job
  }

  /** Counts the unfinished events. Those that are in the tables only wait, until it is known that one waits for a retry. */
  protected countsWith(left: ReadonlySet<number>): Omit<InboxStats, 'deadLetters'> {
    const counts = this.options.jobs.counts()
    if (left.size === 0) return counts
    const times = [counts.oldestWaitingAt, this.#oldestOf(left)].filter((time) => time !== undefined)
    const [oldestWaitingAt] = times.sort((a, b) => a.getTime() - b.getTime())
    return { ...counts, waiting: counts.waiting + left.size, ...(oldestWaitingAt && { oldestWaitingAt }) }
  }

  #oldestOf([row = 0]: ReadonlySet<number>): Date | undefined {
    try {
      const stored = this.options.file.events.get(row)
      return stored && new Date(sinceOf(stored))
    } catch {
      // It is reported in its turn.
      return undefined
    }
  }
}
