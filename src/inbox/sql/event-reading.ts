import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { CheckedQuery } from '../operations/event-query.ts'
import type { EventState, InboxStats } from '../reading.ts'
import type { EventId } from './event.ts'
import type { SqlJobs } from './job.ts'
import type { Value } from './tables.ts'

/** Tables of events, unfinished ones first. An event is in one table at most. */
export const eventTables = ['event', 'dead_letter', 'handled'] as const

export type EventTable = (typeof eventTables)[number]

/** Event id and JSON column of each table. */
export const columnsOf = {
  event: { id: 'id', json: 'event' },
  dead_letter: { id: 'event_id', json: 'dead_letter' },
  handled: { id: 'id', json: 'record' },
} as const satisfies Record<EventTable, object>

export function tablesOf(state: EventState | undefined): readonly EventTable[] {
  if (state === undefined) return eventTables
  if (state === 'dead') return ['dead_letter']
  return state === 'handled' ? ['handled'] : ['event']
}

export type OwnJobs = Pick<SqlJobs, 'started' | 'counts'>

/** Rows one statement of a list looks at. */
export interface Slice {
  /** SQL condition on the rows of a table with this id column. */
  readonly where: (id: string, table: EventTable) => string
  readonly values: readonly Value[]
  /** Last id covered. Absent if the slice covers the rest. */
  readonly upTo?: EventId | undefined
}

/** No restriction. */
export const everything: Slice = { where: () => 'true', values: [] }

/** What listing and counting events needs to know of a database. */
export interface EventReading {
  /** Maximum number of rows per statement, where reading blocks the event loop. */
  readonly rowsPerTurn?: number
  /** Scan budget: statements, or time (ms). Past it a page may come back short. */
  readonly longestScan: { readonly statements?: number; readonly ms?: number }
  readonly maxCounted?: number
  /** SQL condition: the event waits for a retry. */
  readonly isRetrying: string
  /** SET clause that makes a retry due. */
  readonly makeDue: string
  /** More fields of an unfinished event, as column or expression: `awaits`, `owed` and `claimed`. */
  readonly fields?: Readonly<Record<string, string>>
  /** Common table expression `claimed (id, owner)`. Absent in a database that only one process opens. */
  readonly claimed?: string
  readonly owner?: () => string
  /** Name of this process for operators, unless `claimed` has it. */
  readonly process?: string
  /** Narrows a list through an index, or bounds what a statement scans. Absent: lists scan everything. */
  readonly slice?: (query: CheckedQuery, after: EventId | undefined) => MaybePromise<Slice>
  /** Asks the other process that holds an event to stop its handler. False if there is none. */
  readonly stop?: (key: string) => Promise<boolean>
  readonly counts?: (jobs: OwnJobs | undefined) => MaybePromise<Omit<InboxStats, 'deadLetters' | 'expected'>>
}
