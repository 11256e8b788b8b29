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

/** Returns fields of rows as columns. No NULLs: with `array_nulls` off, Postgres reads them as text. */
const columns = <Row>(rows: readonly Row[], ...names: readonly (keyof Row)[]): readonly unknown[][] =>
  names.map((name) => rows.map((row) => row[name] ?? ''))

/** Columns of the events to accept. */
export const acceptColumns = (events: readonly Omit<NewEvent, 'changes'>[]): readonly unknown[][] =>
  columns(events, 'hash', 'media', 'event', 'head', 'receivedAt', 'trace', 'owed')

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
  const begun = columns(
    begins,
    ...(['by', 'hash', 'subject', 'media', 'rule', 'beganAt', 'dueAt', 'event', 'head', 'trace', 'owed'] as const),
  )
  const values = [...columns(ends, 'by', 'subject', 'at'), ...begun, Date.now()]
  return { values, subjects: [...ends, ...begins].map(({ subject }) => subject) }
}

/** Columns of the lanes to settle. */
export const laneColumns = (lanes: readonly SettledLane[]): readonly unknown[][] =>
  columns(
    lanes.map(({ release, ...lane }) => ({
      ...lane,
      isReleased: release !== undefined,
      hasMore: release?.hasMore === true,
      restMs: release?.restMs ?? -1,
    })),
    ...(['media', 'turn', 'first', 'last', 'latestAt', 'clear', 'isReleased', 'hasMore', 'restMs'] as const),
  )

/** Columns of the events to settle. */
export const settledColumns = (events: readonly SettledEvent[]): readonly unknown[][] =>
  columns(
    events.map((event) => ({
      ...event,
      counts: Number(event.counts),
      completed: arrayLiteral(event.completed.map(storedName)),
      awaits: arrayLiteral(event.awaits),
    })),
    ...(['media', 'id', 'kind', 'attempts', 'counts', 'delayMs', 'completed', 'failed', 'late', 'awaits'] as const),
  )

/** A handler's name as it is stored: text holds no NUL, but JSON does. */
export const storedName = (name: string): string => JSON.stringify(name).slice(1, -1)

/** A lane that was claimed, with one of its events, without an id if there is none, or without `event` past the limit of bytes. */
export type ClaimedRow = Pick<ClaimedLane, 'media' | 'turn' | 'position' | 'awaits'> &
  Omit<StoredEvent, 'id' | 'event'> & {
    readonly marks: number
    readonly latestAt: number | null
    readonly id: number | null
    readonly event: string | null
  }

/** Gathers the rows of each lane: up to `max` events, and none behind one that is past the limit of bytes. */
export function readLanes(rows: readonly ClaimedRow[], max: number): readonly ClaimedLane[] {
  const lanes: (Omit<ClaimedLane, 'hasMore'> & { hasMore: boolean; readonly events: StoredEvent[] })[] = []
  for (const { media, turn, position, marks, latestAt, awaits, ...event } of rows) {
    let lane = lanes.at(-1)
    if (lane?.media !== media) {
      const read = { latestAt: latestAt ?? undefined, events: [], hasMore: false }
      lane = { media, turn, position, crashes: marks, awaits, ...read }
      lanes.push(lane)
    }
    if (event.id === null) continue
    lane.hasMore ||= event.event === null || lane.events.length === max
    if (!lane.hasMore) lane.events.push(event as StoredEvent)
  }
  return lanes
}
