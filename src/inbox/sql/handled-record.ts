import type { Job } from '../engine/job.ts'
import { awaitedBy, reviveFailedAttempts, withoutStacks } from '../engine/stored.ts'
import type { EventRecord, FailedAttempt, TraceCarrier } from '../reading.ts'

// An array: field names would double the size, for every event of a day.
type Handled = [
  type: string,
  mediaId: string,
  /** The key. By default it starts with type and media item; then only its end, in an array. */
  key: string | [end: string],
  receivedAt: number,
  /** Time from receipt to end (ms). */
  handledAfter: number,
  attempts: number,
  completed: readonly string[],
  failed?: readonly FailedAttempt[],
  trace?: TraceCarrier | null,
  awaited?: readonly string[],
]

const startOfKey = (type: string, mediaId: string): string => `[${JSON.stringify(type)},${JSON.stringify(mediaId)}`

/** @param trace absent if the database does not keep it */
export function writeHandled(
  { accepted, number, completed, failedAttempts }: Job,
  handlers: readonly string[],
  trace?: TraceCarrier,
): string {
  const { key, type, mediaId } = accepted.event
  const receivedAt = accepted.receivedAt.getTime()
  const start = startOfKey(type, mediaId)
  const shortKey = key.startsWith(start) ? `[${JSON.stringify(key.slice(start.length))}]` : JSON.stringify(key)
  const all = JSON.stringify(completed.length === 0 ? handlers : [...new Set([...completed, ...handlers])])
  const { awaited } = awaitedBy(accepted.event)
  const optional = awaited === undefined ? trace && [trace] : [trace ?? null, awaited]
  const trailing =
    optional !== undefined || failedAttempts.length > 0 ? [withoutStacks(failedAttempts), ...(optional ?? [])] : []
  const trailingJson = trailing.map((each) => `,${JSON.stringify(each)}`).join('')
  // `start` is already JSON. Concatenating is faster than serialising one array.
  return `${start},${shortKey},${receivedAt},${Date.now() - receivedAt},${number},${all}${trailingJson}]`
}

export function readHandled(text: string): EventRecord {
  const [type, mediaId, key, receivedAt, handledAfter, attempts, completed, ...trailing] = JSON.parse(text) as Handled
  const [failed, trace, awaited] = trailing
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
    ...(trace != null && { trace }),
    ...(awaited !== undefined && { awaited }),
  }
}
