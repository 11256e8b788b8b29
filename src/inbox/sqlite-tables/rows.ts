import { Job } from '../engine/job.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadEvent, EventRecord, FailedAttempt } from '../reading.ts'
import { readDeadLetter } from '../sql/dead-letter-row.ts'
import type { ClaimedEvent } from '../sql/event.ts'

/** An unfinished event as a row of its table. */
export interface EventRow {
  readonly id: number
  readonly event: string
  readonly received_at: number
  /** Time of its last retry or replay. */
  readonly since: number | null
  /** `null` unless it waits for a retry. */
  readonly due_at: number | null
  readonly attempts: number
  readonly completed: string
  readonly crashes: number
  readonly trace: string | null
  readonly failed: string | null
}

/** An event as a row of all tables. At most one of them has it. */
export type RecordRow = Partial<EventRow> & {
  readonly id: number
  readonly handled?: string | null
  readonly dead_letter?: string | null
}

export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent'

  constructor(row: number, cause: unknown) {
    super(`the event in row ${row} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

/** @throws UnreadableEvent */
export function toClaimed(row: EventRow): ClaimedEvent {
  try {
    const accepted = { event: reviveEvent(JSON.parse(row.event)), receivedAt: new Date(row.received_at) }
    return {
      id: row.id,
      releases: 0,
      accepted: row.trace === null ? accepted : { ...accepted, trace: JSON.parse(row.trace) },
      attempts: row.attempts,
      completed: JSON.parse(row.completed),
      failedAttempts: row.failed === null ? [] : reviveFailedAttempts(JSON.parse(row.failed)),
      crashes: row.crashes,
      since: row.since ?? row.received_at,
      size: row.event.length,
    }
  } catch (error) {
    throw new UnreadableEvent(row.id, error)
  }
}

/**
 * Reads an event. `undefined`: the tables have only its key.
 * @param current returns an event that this process holds: the tables do not have its state
 */
export function toRecord(row: RecordRow, current: (key: string) => EventRecord | undefined): EventRecord | undefined {
  if (row.handled) return readHandled(row.handled)
  if (row.dead_letter) return deadRecord(readDeadLetter({ dead_letter: row.dead_letter, body: null }) as DeadEvent)
  if (!row.event) return undefined
  const { accepted, attempts, ...earlier } = toClaimed(row as EventRow)
  const job = new Job(accepted, { attempts, ...earlier })
  if ((row.due_at ?? 0) > Date.now()) {
    job.state = 'retrying'
    job.since = row.due_at as number
  }
  return current(job.key) ?? job.record()
}

// It is an array, since the names of the fields would need as much space as their values, for every event of a day.
type Handled = [
  type: string,
  mediaId: string,
  /** The key, or its end in an array if it begins with the type and the media item, as it does by default. */
  key: string | [end: string],
  receivedAt: number,
  /** The time since its receipt, in ms. */
  handledAfter: number,
  attempts: number,
  completed: readonly string[],
  failed?: readonly FailedAttempt[],
]

const startOfKey = (type: string, mediaId: string): string => `[${JSON.stringify(type)},${JSON.stringify(mediaId)}`

/** Writes the record of a handled event. */
export function writeHandled(
  { accepted, number, completed, failedAttempts }: Job,
  handlers: readonly string[],
): string {
  const { key, type, mediaId } = accepted.event
  const receivedAt = accepted.receivedAt.getTime()
  const start = startOfKey(type, mediaId)
  const shortKey = key.startsWith(start) ? `[${JSON.stringify(key.slice(start.length))}]` : JSON.stringify(key)
  const all = JSON.stringify(completed.length === 0 ? handlers : [...new Set([...completed, ...handlers])])
  const failed = failedAttempts.length === 0 ? '' : `,${JSON.stringify(failedAttempts)}`
  // `start` is the JSON of the type and the media item. Separate texts are written faster than an array of them.
  return `${start},${shortKey},${receivedAt},${Date.now() - receivedAt},${number},${all}${failed}]`
}

function readHandled(text: string): EventRecord {
  const [type, mediaId, key, receivedAt, handledAfter, attempts, completed, failed] = JSON.parse(text) as Handled
  return {
    key: typeof key === 'string' ? key : startOfKey(type, mediaId) + key[0],
    type,
    mediaId,
    state: 'handled',
    receivedAt: new Date(receivedAt),
    attempts,
    completed,
    failedAttempts: reviveFailedAttempts(failed),
    endedAt: new Date(receivedAt + handledAfter),
  }
}
