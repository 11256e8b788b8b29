import type { InboxHost } from '../inbox.ts'
import type { Database } from './database.ts'
import { withChanges } from './offered.ts'

/** Maximum expectations fired per step. */
const maxBatch = 500

interface Firing {
  readonly database: Database
  readonly host: Pick<InboxHost, 'expectations' | 'handlersOf'>
  /** Called when there may be new events. */
  readonly stored: () => void
}

/**
 * Turns a batch of overdue expectations, and of offered events, into events, whichever process comes first. If an event ends
 * one meanwhile, the first commit wins. Resolves with the time until the next (ms), Infinity if none is open.
 */
export async function fireOverdue({ database, host, stored }: Firing): Promise<number> {
  const { overdue, nextInMs } = await database.run(database.steps.overdue(maxBatch))
  if (overdue.length === 0) return Math.max(0, nextInMs)
  try {
    await database.run(database.steps.fire(overdue.map((each) => withChanges(each, database, host))))
  } finally {
    // If the answer was lost, the events may be stored.
    stored()
  }
  return overdue.length === maxBatch ? 0 : Math.max(0, nextInMs)
}
