import type { Logger } from '../../internal/logger.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { Engine } from '../engine/engine.ts'
import type { Jobs } from '../engine/jobs.ts'
import type { SqliteJob, Transactions } from './job.ts'
import { toJob, UnreadableEvent, waitOf } from './rows.ts'
import type { Commits, SqliteTables } from './storage.ts'

/** The number of events that are read from the file in one turn of the event loop: about a millisecond of work. */
export const eventsPerTurn = 50

/** The number of rows that are listed in one turn: one or two milliseconds. */
export const rowsPerTurn = 2_000

/** The number of jobs that are examined in one turn. */
export const jobsPerTurn = 5_000

export interface LoaderOptions {
  readonly file: SqliteTables
  readonly commits: Commits
  readonly jobs: Jobs<SqliteJob>
  readonly engine: Engine<SqliteJob>
  readonly transactions: Transactions
  readonly logger: Logger
  /** Returns `true` once the inbox loads no more events. */
  readonly hasStopped: () => boolean
  /** Makes the inbox read the file again soon. */
  readonly checkAgain: () => void
}

/** Loads events of the file if they are not in memory: an earlier process left them, or another one replayed them. */
export class Loader<Options extends LoaderOptions = LoaderOptions> {
  protected readonly options: Options
  /** The rows of unreadable events that were already reported. */
  readonly #unreadable = new Set<number>()
  #isReading = false

  constructor(options: Options) {
    this.options = options
  }

  /** Loads all events that are not in memory, in one step. Throws if one cannot be read. */
  all(): void {
    for (const row of this.missingRows()) this.load(row)
  }

  protected missingRows(): number[] {
    const { file, jobs } = this.options
    const held = new Set(Array.from(jobs, ({ row }) => row))
    return file.events.rows().filter((row) => !held.has(row))
  }

  /**
   * Loads the events that are not in memory, a few in each turn of the event loop, so that deliveries do not wait for
   * it.
   */
  async missing(): Promise<void> {
    const { logger, checkAgain } = this.options
    if (this.#isReading) return checkAgain()
    this.#isReading = true
    try {
      await this.#loadMissing()
    } catch (error) {
      logger.warn({ err: error }, 'the inbox could not read its file')
      checkAgain()
    } finally {
      this.#isReading = false
    }
  }

  async #loadMissing(): Promise<void> {
    const { file, jobs, hasStopped } = this.options
    const held = new Set<number>()
    for (const { row } of jobs) if (held.add(row).size % jobsPerTurn === 0) await nextTurn()
    let taken = 0
    let rows: readonly number[] = []
    do {
      if (hasStopped()) return
      rows = file.events.rows(rows.at(-1), rowsPerTurn)
      for (const row of rows) {
        if (held.has(row)) continue
        if (++taken % eventsPerTurn === 0) await nextTurn()
        if (hasStopped()) return
        this.loadReadable(row)
      }
      await nextTurn()
    } while (rows.length === rowsPerTurn)
  }

  /** Loads a replayed event. If the file cannot be read now, it is read again soon. */
  replayed(row: number): void {
    try {
      this.load(row, (job) => this.add(job))
    } catch {
      this.options.checkAgain()
    }
  }

  /** Handles a new job. Its event has just been accepted or replayed. */
  add(job: SqliteJob): void {
    this.options.engine.add(job)
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
      this.options.logger.error(
        { row, err: error },
        'an event in the file of the inbox cannot be read, and stays there',
      )
      return undefined
    }
  }

  /**
   * Loads an event. Returns `undefined` if it is in memory, or if it has ended since its row was listed. Throws if it
   * cannot be read.
   * @param add handles a due job
   */
  protected load(row: number, add = (job: SqliteJob) => this.options.engine.add(job)): SqliteJob | undefined {
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
    if (isTooLong) commits.add(() => file.events.bringForward(row, row)).catch(() => {})
    return job
  }
}
