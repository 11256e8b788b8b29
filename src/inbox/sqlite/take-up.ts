import type { Logger } from '../../internal/logger.ts'
import { later } from '../../internal/timers.ts'
import type { Handling } from '../shared/handling.ts'
import type { Jobs } from '../shared/jobs.ts'
import type { SqliteTables } from './file.ts'
import { SqliteJob, type Transactions } from './job.ts'

/** The number of events that are read from the file in one turn of the event loop. */
const perTurn = 25

/** The parts of the inbox that taking up uses. */
export interface TakeUpOptions {
  readonly file: SqliteTables
  readonly jobs: Jobs<SqliteJob>
  readonly handling: Handling<SqliteJob>
  readonly transactions: Transactions
  readonly logger: Logger
  /** Returns `true` once the inbox takes up nothing more. */
  readonly hasStopped: () => boolean
  /** Makes the inbox look into the file again soon. */
  readonly lookAgain: () => void
}

/** Takes up events of the file that are not in memory: an earlier process left them, or another one replayed them. */
export class TakeUp {
  readonly #options: TakeUpOptions
  #isReading = false

  constructor(options: TakeUpOptions) {
    this.#options = options
  }

  /** Takes up every event that is not in memory, when the file is opened or closed. Throws when one cannot be read. */
  all(): void {
    for (const row of this.#missingRows()) this.#takeUp(row)
  }

  #missingRows(): number[] {
    const { file, jobs } = this.#options
    const held = new Set(Array.from(jobs, ({ row }) => row))
    return file.events.rows().filter((row) => !held.has(row))
  }

  /** Takes up the events that are not in memory, a few in each turn of the event loop: deliveries have their turn too. */
  async missing(): Promise<void> {
    const { logger, hasStopped, lookAgain } = this.#options
    if (this.#isReading) return lookAgain()
    this.#isReading = true
    try {
      for (const [index, row] of this.#missingRows().entries()) {
        if (index % perTurn === perTurn - 1) await new Promise<void>((resolve) => later(resolve))
        if (hasStopped()) return
        this.#takeUp(row)
      }
    } catch (error) {
      logger.warn({ err: error }, 'the inbox could not read its file')
    } finally {
      this.#isReading = false
    }
  }

  /** Takes up an event that has been replayed. The file is read again soon if it cannot be read now. */
  replayed(row: number): void {
    try {
      this.#takeUp(row)
    } catch {
      this.#options.lookAgain()
    }
  }

  #takeUp(row: number): void {
    const { file, jobs, handling, transactions } = this.#options
    const stored = file.events.get(row)
    // It may have ended since its row was listed.
    if (stored === undefined || jobs.get(stored.event.key) !== undefined) return
    const { event, receivedAt, trace, dueInMs } = stored
    const accepted = trace === undefined ? { event, receivedAt } : { event, receivedAt, trace }
    const job = new SqliteJob(accepted, row, transactions, stored)
    jobs.add(job)
    if (dueInMs > 0) handling.addLater(job, dueInMs)
    else handling.add(job)
  }
}
