import type {
  ClaimedLane,
  NewEvent,
  SettledEvent,
  SettledLane,
  StoredEvent,
  StoredExpectation,
} from '../sql/database.ts'
import { arrayLiteral } from './step.ts'

// Parameters of the statements, as columns, and the rows that they return.

/** Columns of the events to accept. No NULLs: with `array_nulls` off, Postgres reads them as text. */
export const acceptColumns = (events: readonly Omit<NewEvent, 'changes'>[]): readonly unknown[][] => [
  events.map(({ hash }) => hash),
  events.map(({ media }) => media),
  events.map(({ event }) => event),
  events.map(({ head }) => head),
  events.map(({ receivedAt }) => receivedAt),
  events.map(({ trace }) => trace ?? ''),
  events.map(({ owed }) => owed ?? ''),
]

/** Parameters for the changes of expectations, and the subjects whose expectations may have ended. */
export function changeColumns(
  events: readonly NewEvent[],
): { readonly values: readonly unknown[]; readonly subjects: readonly string[] } | undefined {
  const ends: { by: string; subject: string; at: number }[] = []
  const begins: (StoredExpectation & { readonly by: string })[] = []
  for (const { hash: by, changes } of events) {
    for (const subject of changes?.ends ?? []) ends.push({ by, subject, at: changes?.at as number })
    for (const begun of changes?.begins ?? []) begins.push({ ...begun, by })
  }
  if (ends.length === 0 && begins.length === 0) return undefined
  const values = [
    ends.map(({ by }) => by),
    ends.map(({ subject }) => subject),
    ends.map(({ at }) => at),
    begins.map(({ by }) => by),
    begins.map(({ hash }) => hash),
    begins.map(({ subject }) => subject),
    begins.map(({ media }) => media),
    begins.map(({ rule }) => rule),
    begins.map(({ beganAt }) => beganAt),
    begins.map(({ dueAt }) => dueAt),
    begins.map(({ event }) => event),
    begins.map(({ head }) => head),
    begins.map(({ trace }) => trace ?? ''),
    begins.map(({ owed }) => owed),
    Date.now(),
  ]
  return { values, subjects: [...ends, ...begins].map(({ subject }) => subject) }
}

/** Columns of the lanes to settle. */
export const laneColumns = (lanes: readonly SettledLane[]): readonly unknown[][] => [
  lanes.map(({ media }) => media),
  lanes.map(({ turn }) => turn),
  lanes.map(({ first }) => first),
  lanes.map(({ last }) => last),
  lanes.map(({ latestAt }) => latestAt ?? ''),
  lanes.map(({ clear }) => clear),
  lanes.map(({ release }) => release !== undefined),
  lanes.map(({ release }) => release?.hasMore === true),
  lanes.map(({ release }) => release?.restMs ?? -1),
]

/** Columns of the events to settle. */
export const settledColumns = (events: readonly SettledEvent[]): readonly unknown[][] => [
  events.map(({ media }) => media),
  events.map(({ id }) => id),
  events.map(({ kind }) => kind),
  events.map(({ attempts }) => attempts),
  events.map(({ counts }) => Number(counts)),
  events.map(({ delayMs }) => delayMs),
  events.map(({ completed }) => arrayLiteral(completed.map(storedName))),
  events.map(({ failed }) => failed ?? ''),
  events.map(({ late }) => late),
  events.map(({ awaits }) => arrayLiteral(awaits)),
]

/** A handler's name as it is stored: text holds no NUL, but JSON does. */
export const storedName = (name: string): string => JSON.stringify(name).slice(1, -1)

/** A lane that was claimed, with one of its events. `id` is null if there is none. */
export interface ClaimedRow {
  readonly media: string
  readonly turn: number
  readonly position: string
  readonly marks: number
  readonly latest_at: string | null
  readonly awaiting: boolean
  readonly id: string | null
  /** Null if it is past the limit of bytes. */
  readonly event: string | null
  readonly trace: string | null
  readonly received: string
  readonly waiting_since: string
  readonly owed: string | null
  readonly attempts: number
  readonly completed: string
  readonly failed: string | null
  readonly crashes: number
  readonly late: boolean
  readonly is_retry: boolean
  readonly wait: string
}

/** Gathers the rows of each lane: up to `max` events, and none behind one that is past the limit of bytes. */
export function readLanes(rows: readonly ClaimedRow[], max: number): readonly ClaimedLane[] {
  const lanes: ClaimedLane[] = []
  for (let start = 0; start < rows.length; ) {
    const row = rows[start] as ClaimedRow
    const events: StoredEvent[] = []
    let hasMore = false
    let end = start
    for (; rows[end]?.media === row.media; end++) {
      const next = rows[end] as ClaimedRow
      if (next.id === null) continue
      hasMore ||= next.event === null || events.length === max
      if (!hasMore) events.push(toEvent(next))
    }
    const { media, turn, position, marks, latest_at: latestAt, awaiting } = row
    lanes.push({
      media,
      turn,
      position: Number(position),
      crashes: marks,
      latestAt: latestAt === null ? undefined : Number(latestAt),
      events,
      hasMore,
      awaits: awaiting,
    })
    start = end
  }
  return lanes
}

const toEvent = (row: ClaimedRow): StoredEvent => ({
  id: Number(row.id),
  event: row.event as string,
  trace: row.trace,
  receivedAt: Number(row.received),
  owed: row.owed,
  attempts: row.attempts,
  completed: row.completed,
  failed: row.failed,
  crashes: row.crashes,
  late: row.late,
  since: Number(row.waiting_since),
  isRetry: row.is_retry,
  dueInMs: Number(row.wait),
})
