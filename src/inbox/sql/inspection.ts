import { firstMinute, toActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { InspectedInbox } from '../reading.ts'
import { readMinutes } from './activity.ts'
import { type Replays, SqlDeadLetters } from './dead-letters.ts'
import { pauseTable } from './pauses.ts'
import type { SqlTables } from './tables.ts'

/** Makes an inbox for inspection of its tables, and of what each database reads in its own way. */
export const inspectedInbox = <Own extends Pick<InspectedInbox, 'stats' | 'events' | 'expected' | 'close'>>(
  tables: SqlTables,
  replays: Replays,
  own: Own,
): InspectedInbox & Own => ({
  ...own,
  deadLetters: new SqlDeadLetters(tables, replays),
  history: (mediaId) => historyOf(own.events, mediaId),
  activity: async (since) => toActivity(await readMinutes(tables, firstMinute(since))),
  pauses: new StoredPauses(pauseTable(tables)),
})
