import type { Database } from './database.ts'

/** Maximum expectations fired per step. */
const maxBatch = 500

/**
 * Turns a batch of overdue expectations into events, whichever process comes first. If an event ends one meanwhile, the
 * first commit wins. Resolves with the time until the next (ms), Infinity if none is open.
 * @param stored called when there may be new events
 */
export async function fireOverdue(database: Database, stored: () => void): Promise<number> {
  const { overdue, nextInMs } = await database.run(database.steps.overdue(maxBatch))
  if (overdue.length === 0) return Math.max(0, nextInMs)
  try {
    await database.run(database.steps.fire(overdue))
  } finally {
    // If the answer was lost, the events may be stored.
    stored()
  }
  return overdue.length === maxBatch ? 0 : Math.max(0, nextInMs)
}
