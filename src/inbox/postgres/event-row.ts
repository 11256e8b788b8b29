import type { MediaEvent } from '../../events/catalogue.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadEvent, EventRecord, FailedAttempt, TraceCarrier } from '../reading.ts'
import { readDeadLetter } from '../sql/dead-letter-row.ts'
import type { EventId } from '../sql/event.ts'
import { readHandled } from '../sql/handled-record.ts'
import { claimedEvents } from './claim/claimed.ts'

/**
 * What a process knows of the events it holds. Asked before the database: an event that starts in between is shown as waiting,
 * and each event is counted once.
 */
export interface OwnClaims {
  /** Absent if it handles no events. */
  readonly owner?: string | undefined
  /** Starts of the running attempts by event id. The other held events wait for a slot, or behind one of their media item. */
  readonly started?: ReadonlyMap<EventId, Date>
}

/** The tables of events, first the one of the unfinished events. */
export const tableNames = ['event', 'dead_letter', 'handled'] as const

export type TableName = (typeof tableNames)[number]

/** An event as a row of its table. */
export interface EventRow {
  readonly source: TableName
  /** The event's id. Its name is not `id`, because Postgres would sort by the text. */
  readonly place: string
  readonly record: string
}

/** The columns of each table: the event's id, and its JSON as a text, because the pool's parsers can be the user's. */
export const columnsOf = {
  event: {
    id: 'id',
    json: 'event',
    record: `json_build_object(
      'event', event, 'receivedAt', extract(epoch FROM received_at) * 1000, 'attempts', attempts, 'completed', completed,
      'failedAttempts', failed, 'dueAt', extract(epoch FROM due_at) * 1000, 'awaits', awaits, 'trace', trace, 'owed', owed,
      'claimed', (SELECT json_build_object('owner', claimed.owner, 'process', process, 'startedAt', started_at)
        FROM claimed WHERE claimed.id = event.id LIMIT 1)
    )`,
  },
  dead_letter: { id: 'event_id', json: 'dead_letter', record: 'dead_letter' },
  handled: { id: 'id', json: 'record', record: 'record' },
} as const satisfies Record<TableName, object>

/** Selects the {@link EventRow}s of a table, in a statement that begins with {@link withClaimed}. */
export const selectOf = (table: TableName, where: string): string => {
  const { id, record } = columnsOf[table]
  return `SELECT '${table}' AS source, ${id}::text AS place, ${record}::text AS record, ${id} AS id
    FROM $${table} WHERE ${where}`
}

/** The beginning of a statement: the claimed events, with what their processes publish. */
export const withClaimed = (schema: string): string => `
  WITH claimed AS MATERIALIZED (
    SELECT held.id, held.owner, process, running -> held.id::text AS started_at
    FROM (${claimedEvents(schema)}) held LEFT JOIN ${schema}.owner ON owner.id = held.owner
  )`

interface UnfinishedRow extends Pick<EventRecord, 'attempts' | 'completed'> {
  readonly event: MediaEvent
  readonly receivedAt: number
  readonly failedAttempts: readonly FailedAttempt[] | null
  readonly dueAt: number | null
  readonly awaits: readonly string[] | null
  readonly trace: TraceCarrier | null
  readonly owed: readonly string[] | null
  /** What the process that has it publishes. `null` if none has it. */
  readonly claimed: {
    readonly owner: string
    readonly process: string | null
    readonly startedAt: number | null
  } | null
}

/**
 * Makes the record of an event.
 * @param claims the claims of this process before the row was read
 */
export function toRecord({ source, place, record }: EventRow, claims: OwnClaims): EventRecord {
  if (source === 'dead_letter') return deadRecord(readDeadLetter({ dead_letter: record, body: null }) as DeadEvent)
  return source === 'handled' ? readHandled(record) : unfinished(JSON.parse(record), place, claims)
}

const isRunning = (owner: string | undefined, id: string, claims: OwnClaims): boolean =>
  owner !== undefined && (owner !== claims.owner || claims.started?.has(id) === true)

function unfinished(row: UnfinishedRow, id: string, claims: OwnClaims): EventRecord {
  const hasStarted = isRunning(row.claimed?.owner, id, claims)
  const { key, type, mediaId } = row.event
  return {
    key,
    type,
    mediaId,
    state: row.dueAt !== null ? 'retrying' : hasStarted ? 'running' : 'waiting',
    event: reviveEvent(row.event),
    receivedAt: new Date(Math.round(row.receivedAt)),
    attempts: hasStarted ? row.attempts + 1 : row.attempts,
    completed: row.completed,
    failedAttempts: reviveFailedAttempts(row.failedAttempts ?? []),
    ...(row.dueAt !== null && row.awaits === null && { dueAt: new Date(Math.round(row.dueAt)) }),
    ...(row.dueAt === null && hasStarted && runOf(row, claims.started?.get(id))),
    ...(row.trace !== null && { trace: row.trace }),
    ...(row.owed !== null && { owed: row.owed.filter((handler) => !row.completed.includes(handler)) }),
  }
}

/** @param ownStart the start of the attempt, if this process makes it. Other processes publish it after some seconds */
function runOf({ claimed }: UnfinishedRow, ownStart: Date | undefined): Pick<EventRecord, 'startedAt' | 'process'> {
  const { process = null, startedAt = null } = claimed ?? {}
  const start = ownStart ?? (startedAt === null ? undefined : new Date(startedAt))
  return { ...(start !== undefined && { startedAt: start }), ...(process !== null && { process }) }
}
