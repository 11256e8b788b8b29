import { reviveFailedAttempts } from '../engine/failed-attempts.ts'
import type { Job } from '../engine/job.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadEvent, EventRecord, FailedAttempt } from '../reading.ts'
import { toDeadLetter } from './dead-letter-row.ts'
import { type EventRow, type StoredEvent, toStoredEvent } from './event-row.ts'

/** The data of an event in the tables. At most one part of it is present. */
export type RecordRow = Partial<EventRow> & {
  readonly id: number
  readonly handled?: string | null
  readonly dead_letter?: string | null
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

/**
 * Reads an event. Returns `undefined` if the tables have only its key.
 * @param current returns an event of this process, because the tables do not have its state
 */
export function readRecord(row: RecordRow, current: (key: string) => EventRecord | undefined): EventRecord | undefined {
  if (row.handled) return readHandled(row.handled)
  if (row.dead_letter)
    return deadRecord(toDeadLetter({ event_id: row.id, dead_letter: row.dead_letter, body: null }) as DeadEvent)
  if (!row.event) return undefined
  const stored = toStoredEvent(row as EventRow)
  return current(stored.event.key) ?? unfinishedRecord(stored)
}

function unfinishedRecord({
  row: _,
  crashes: __,
  waitsTooLong: ___,
  since: ____,
  dueInMs,
  ...stored
}: StoredEvent): EventRecord {
  const { key, type, mediaId } = stored.event
  const failedAttempts = stored.failedAttempts ?? []
  const record = { ...stored, key, type, mediaId, failedAttempts }
  return dueInMs > 0
    ? { ...record, state: 'retrying', dueAt: new Date(Date.now() + dueInMs) }
    : { ...record, state: 'waiting' }
}
