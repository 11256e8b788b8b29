import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { awaitedBy, reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadEvent, EventRecord, FailedAttempt, TraceCarrier } from '../reading.ts'
import { readDeadLetter } from './dead-letter-row.ts'
import type { EventId } from './event.ts'
import { columnsOf, type EventReading, type EventTable } from './event-reading.ts'
import { readHandled } from './handled-record.ts'
import type { SqlTables } from './tables.ts'

export interface EventRow {
  readonly source: EventTable
  readonly id: EventId
  readonly record: string
}

export function selectRows(tables: SqlTables, reading: EventReading, table: EventTable, where: string): string {
  const { id, json } = columnsOf[table]
  const record = table === 'event' ? unfinishedJson(tables, reading) : tables.json(json)
  return `SELECT '${table}' AS source, ${id} AS id, ${record} AS record FROM $${table} WHERE ${where}`
}

/** SQL expression for the JSON of an {@link UnfinishedRow}. JSON columns are spliced in unparsed. */
function unfinishedJson({ json, ms }: SqlTables, { isRetrying, fields }: EventReading): string {
  const values = {
    event: 'event',
    receivedAt: ms('received_at'),
    attempts: 'attempts',
    completed: 'completed',
    failedAttempts: 'failed',
    dueAt: `CASE WHEN ${isRetrying} THEN ${ms('due_at')} END`,
    trace: 'trace',
    ...fields,
  }
  const parts = Object.entries(values).map(([name, value]) => `"${name}":' || coalesce(${json(value)}, 'null')`)
  return `'{${parts.join(" || ',")} || '}'`
}

interface UnfinishedRow extends Pick<EventRecord, 'attempts' | 'completed'> {
  readonly event: MediaEvent
  readonly receivedAt: number
  readonly failedAttempts: readonly FailedAttempt[] | null
  readonly dueAt: number | null
  readonly trace: TraceCarrier | null
  readonly awaits?: readonly string[] | null
  readonly owed?: readonly string[] | null
  /** As published by the process that holds the event. `null` if none does. */
  readonly claimed?: PublishedClaim | null
}

interface PublishedClaim {
  readonly owner: string
  readonly process: string | null
  readonly startedAt: number | null
}

type OwnRun = Pick<EventRecord, 'startedAt' | 'handler'>

/** This process's own events. Read before the database: an event starting in between is waiting, and counts once. */
export interface OwnClaims {
  readonly owner: string | undefined
  readonly process: string | undefined
  /** Running attempts by event id. Other held events wait for a slot or for their media item. */
  readonly started: ReadonlyMap<EventId, OwnRun>
}

/** @param own this process's claims, taken before the row was read */
export function toRecord({ source, id, record }: EventRow, own: OwnClaims): EventRecord {
  if (source === 'handled') return readHandled(record)
  if (source === 'dead_letter') return deadRecord(readDeadLetter({ dead_letter: record, body: null }) as DeadEvent)
  return unfinished(JSON.parse(record), own, own.started.get(id))
}

/** @param ownStart the attempt, if this process runs it. Other processes publish theirs after some seconds */
function unfinished(row: UnfinishedRow, own: OwnClaims, ownStart: OwnRun | undefined): EventRecord {
  const { event, attempts, completed, dueAt, trace, awaits = null, owed = null, claimed = null } = row
  // A retry may be recorded, and its answer still on the way to this process.
  const isRunning = dueAt === null && (ownStart !== undefined || (claimed !== null && claimed.owner !== own.owner))
  const { key, type, mediaId } = event
  return {
    key,
    type,
    mediaId,
    state: dueAt !== null ? 'retrying' : isRunning ? 'running' : 'waiting',
    event: reviveEvent(event),
    ...awaitedBy(event),
    receivedAt: new Date(row.receivedAt),
    attempts: isRunning ? attempts + 1 : attempts,
    completed,
    failedAttempts: reviveFailedAttempts(row.failedAttempts ?? []),
    ...(dueAt !== null && awaits === null && { dueAt: new Date(dueAt) }),
    ...(isRunning && runOf(claimed, own, ownStart)),
    ...(trace !== null && { trace }),
    ...(owed !== null && { owed: owed.filter((handler) => !completed.includes(handler)) }),
  }
}

function runOf(
  claimed: PublishedClaim | null,
  own: OwnClaims,
  ownStart: OwnRun | undefined,
): Pick<EventRecord, 'startedAt' | 'process' | 'handler'> {
  const start = ownStart?.startedAt?.getTime() ?? claimed?.startedAt
  const process = claimed?.process ?? (ownStart && own.process)
  return { ...ownStart, ...(start != null && { startedAt: new Date(start) }), ...(process != null && { process }) }
}
