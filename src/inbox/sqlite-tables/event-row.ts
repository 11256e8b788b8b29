import { reviveFailedAttempts } from '../engine/failed-attempts.ts'
import type { EarlierAttempts } from '../engine/job.ts'
import { reviveEvent } from '../engine/stored.ts'
import type { AcceptedEvent } from '../inbox.ts'

/** An unfinished event in the file. */
export interface StoredEvent extends AcceptedEvent, EarlierAttempts {
  readonly row: number
  /** The number of processes that ended while its next attempt ran alone. */
  readonly crashes: number
  /** The time until its next attempt, in ms. It is 0 or less when the attempt is due. */
  readonly dueInMs: number
  /** `true` if the file has a later time, because the clock was ahead when the time was recorded. */
  readonly waitsTooLong: boolean
}

/** The error of an event whose row cannot be parsed. */
export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent'

  constructor(row: number, cause: unknown) {
    super(`the event in row ${row} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

/** An unfinished event as a row of its table. */
export interface EventRow {
  readonly id: number
  readonly event: string
  readonly received_at: number
  readonly attempts: number
  readonly completed: string
  readonly due_at: number
  readonly crashes: number
  /** The pause before the next attempt. Earlier releases did not record it. */
  readonly delay_ms?: number | null
  readonly trace: string | null
  /** JSON of the failed attempts. */
  readonly failed: string | null
}

export function toStoredEvent(row: EventRow): StoredEvent {
  const dueInMs = row.due_at - Date.now()
  const pauseMs = row.delay_ms ?? dueInMs
  return {
    row: row.id,
    event: reviveEvent(JSON.parse(row.event)),
    receivedAt: new Date(row.received_at),
    attempts: row.attempts,
    completed: JSON.parse(row.completed),
    failedAttempts: row.failed === null ? [] : reviveFailedAttempts(JSON.parse(row.failed)),
    crashes: row.crashes,
    dueInMs: Math.min(dueInMs, pauseMs),
    waitsTooLong: dueInMs > pauseMs,
    since: Math.max(row.received_at, row.due_at),
    ...(row.trace !== null && { trace: JSON.parse(row.trace) }),
  }
}
