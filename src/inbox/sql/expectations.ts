import type { Database } from './database.ts'

/** Maximum expectations fired per step. */
const maxBatch = 500

/** Turns overdue expectations into events, whichever process comes first. If an event ends one meanwhile, the first commit wins. */
export class OverdueExpectations {
  readonly #database: Database
  readonly #stored: () => void

  /** @param stored called when there may be new events */
  constructor(database: Database, stored: () => void) {
    this.#database = database
    this.#stored = stored
  }

  /** Fires a batch. Resolves with the time until the next (ms), Infinity if none is open. */
  async fireOverdue(): Promise<number> {
    const { steps } = this.#database
    const { overdue, nextInMs } = await this.#database.run(steps.overdue(maxBatch))
    if (overdue.length === 0) return Math.max(0, nextInMs)
    try {
      await this.#database.run(steps.fire(overdue))
    } finally {
      // If the answer was lost, the events may be stored.
      this.#stored()
    }
    return overdue.length === maxBatch ? 0 : Math.max(0, nextInMs)
  }
}
