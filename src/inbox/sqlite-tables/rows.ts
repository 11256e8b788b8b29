import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { ClaimedEvent } from '../sql/event.ts'

export interface SqliteEventRow {
  readonly id: number
  readonly event: string
  readonly received_at: number
  /** Time of its last retry or replay. */
  readonly since: number | null
  readonly due_at: number | null
  readonly attempts: number
  readonly completed: string
  readonly crashes: number
  readonly trace: string | null
  readonly failed: string | null
}

export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent'

  constructor(row: number, cause: unknown) {
    super(`the event in row ${row} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

export function toClaimed(row: SqliteEventRow): ClaimedEvent {
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
