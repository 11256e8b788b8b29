import { firstMinute, toActivity } from '../operations/activity.ts'
import { readHistory } from '../operations/event-query.ts'
import { StoredOperations } from '../operations/operations.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { InspectedInbox } from '../reading.ts'
import { readMinutes } from './activity.ts'
import type { Database } from './database.ts'
import { SqlDeadLetters } from './dead-letters.ts'
import { SqlEvents } from './events.ts'
import { readExpected } from './expected.ts'
import { operationTable } from './operations.ts'
import { pauseTable } from './pauses.ts'

/** Opens the tables for inspection: no deliveries, no handlers. */
export function inspectedInbox(database: Database, { close }: Pick<InspectedInbox, 'close'>): InspectedInbox {
  const events = new SqlEvents(database, undefined, true)
  return {
    stats: () => events.stats(),
    events,
    history: (mediaId) => readHistory(events, mediaId),
    expected: (limit) => readExpected(database, limit),
    deadLetters: new SqlDeadLetters(database),
    activity: async (since) => toActivity(await readMinutes(database, firstMinute(since))),
    pauses: new StoredPauses(pauseTable(database)),
    operations: new StoredOperations(operationTable(database)),
    close,
  }
}
