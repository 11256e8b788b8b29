import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { CheckedQuery } from '../operations/event-query.ts'
import type { EventState, InboxStats } from '../reading.ts'
import type { EventId } from './event.ts'
import type { SqlJobs } from './jobs.ts'
import type { Value } from './tables.ts'

/** The tables of events, first that of the unfinished ones. At most one of them has an event. */
export const eventTables = ['event', 'dead_letter', 'handled'] as const

export type EventTable = (typeof eventTables)[number]

/** The columns of each table with the event's id and its JSON. */
export const columnsOf = {
  event: { id: 'id', json: 'event' },
  dead_letter: { id: 'event_id', json: 'dead_letter' },
  handled: { id: 'id', json: 'record' },
} as const satisfies Record<EventTable, object>

/** The tables that can have events in a state. */
export function tablesOf(state: EventState | undefined): readonly EventTable[] {
  if (state === undefined) return eventTables
  if (state === 'dead') return ['dead_letter']
  return state === 'handled' ? ['handled'] : ['event']
}

/** The events this process holds: only it knows which of them run. */
export type OwnJobs = Pick<SqlJobs, 'started' | 'counts'>

/** The rows that a statement of a list looks at. */
export interface Slice {
  /** A condition on the rows of a table, whose ids are in a column `id`. */
  readonly where: (id: string, table: EventTable) => string
  /** Its values, `$1` and so on. */
  readonly values: readonly Value[]
  /** The last id that it covers. Absent: it covers the rest. */
  readonly upTo?: EventId | undefined
}

/** Everything behind a place. */
export const everything: Slice = { where: () => 'true', values: [] }

/** What the lists and counts of events need to know of a database. */
export interface EventReading {
  /** Maximum number of rows that a statement reads, if a turn of the event loop has to be short. */
  readonly rowsPerTurn?: number
  /** Statements, or time (ms), after which a page may come back short. */
  readonly longestScan: { readonly statements?: number; readonly ms?: number }
  /** Maximum number of rows that a count reads. */
  readonly maxCounted?: number
  /** A condition: the event waits for a retry. */
  readonly isRetrying: string
  /** Makes a retry due, in an UPDATE. */
  readonly makeDue: string
  /** Further fields of an unfinished event, each a column or expression: `awaits`, `owed` and `claimed`. */
  readonly fields?: Readonly<Record<string, string>>
  /** A common table expression `claimed (id, owner)`. Absent in a database that one process at a time opens. */
  readonly claimed?: string
  /** The owner of this process's claims. */
  readonly owner?: () => string
  /** Name of this process, for operators, unless `claimed` says it. */
  readonly process?: string
  /** Narrows a list down by an index, or bounds what a statement examines. Absent: lists read every event. */
  readonly slice?: (query: CheckedQuery, after: EventId | undefined) => MaybePromise<Slice>
  /** Asks the process that holds an event, if it is another one, to stop its handler. False if none holds it. */
  readonly stop?: (key: string) => Promise<boolean>
  /** Counts the unfinished events without reading them all. */
  readonly counts?: (jobs: OwnJobs | undefined) => MaybePromise<Omit<InboxStats, 'deadLetters' | 'expected'>>
}
