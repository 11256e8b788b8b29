import { Job } from '../engine/job.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadEvent, EventRecord } from '../reading.ts'
import { readDeadLetter } from '../sql/dead-letter-row.ts'
import type { ClaimedEvent } from '../sql/event.ts'
import { readHandled } from '../sql/handled-record.ts'

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
