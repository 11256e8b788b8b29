import { firstMinute, toActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredOperations } from '../operations/operations.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { InspectedInbox } from '../reading.ts'
import { readMinutes } from './activity.ts'
import { type Replays, SqlDeadLetters } from './dead-letters.ts'
import type { EventReading } from './event-reading.ts'
import { SqlEvents } from './events.ts'
import { readExpected } from './expected.ts'
import { operationTable } from './operations.ts'
import { pauseTable } from './pauses.ts'
import type { SqlTables } from './tables.ts'

export interface InspectionOptions {
  readonly replays: Replays
  readonly reading: EventReading
  readonly close: InspectedInbox['close']
}

/** Opens the tables for inspection: no deliveries, no handlers. */
export function inspectedInbox(tables: SqlTables, { replays, reading, close }: InspectionOptions): InspectedInbox {
  const events = new SqlEvents(tables, reading)
  return {
    stats: () => events.stats(),
    events,
    history: (mediaId) => historyOf(events, mediaId),
    expected: (limit) => readExpected(tables, limit),
    deadLetters: new SqlDeadLetters(tables, replays),
    activity: async (since) => toActivity(await readMinutes(tables, firstMinute(since))),
    pauses: new StoredPauses(pauseTable(tables)),
    operations: new StoredOperations(operationTable(tables)),
    close,
  }
}
