import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { reviveEvent, reviveFailedAttempts, withoutStacks } from '../engine/stored.ts'
import type { EventRecord, EventState } from '../reading.ts'
import type { RunningAttempt } from './attempt.ts'
import type { Database } from './database.ts'
import { readHead } from './head.ts'
import { isElsewhere, nextOfLane } from './unfinished.ts'

/** The worker of this process, as lists see it. */
export interface OwnWorker {
  readonly owner: string | undefined
  /** Its attempts by event id. */
  running(): ReadonlyMap<number, RunningAttempt>
  /** Stops the running handler of an event. False if none runs. */
  stop(key: string): boolean
  /** Called when an event of some lane may be due. */
  wake(): void
}

/** A row of the table of events. Numbers may be texts. */
export interface EventRow {
  readonly id: number | string
  readonly head: string
  readonly event: string | null
  readonly received: number | string
  readonly attempts: number
  readonly completed: string
  readonly failed: string | null
  readonly trace: string | null
  readonly owed: string | null
  /** Absent if only one process uses the database. */
  readonly awaits?: string | null
  /** Due time, if it is in the future. */
  readonly due: number | string | null
  readonly ended: number | string | null
  readonly died: number | string | null
  /** The other process that has the lane of an unfinished event. */
  readonly holder?: string | null
  /** Not null if it is this event's turn there. */
  readonly is_next?: number | null
}

/** Columns that {@link toRecord} reads, of `$event event`. */
export function recordColumns(
  { dialect, steps }: Pick<Database, 'dialect' | 'steps'>,
  owner: string | undefined,
  value: (owner: string) => string,
): string {
  const { json, ms, names } = dialect
  const columns = [
    'id, attempts',
    ...['head', 'event', 'failed', 'trace', 'owed', ...(steps.shared ? ['awaits'] : [])].map(
      (name) => `${json(name)} AS ${name}`,
    ),
    `${names('completed')} AS completed`,
    `${ms('received_at')} AS received, ${ms('ended_at')} AS ended, ${ms('died_at')} AS died`,
    `CASE WHEN due_at > $now THEN ${ms('due_at')} END AS due`,
  ]
  const elsewhere = isElsewhere({ steps }, owner, value)
  if (elsewhere === undefined) return columns.join()
  const ofLane = (what: string, where: string) =>
    `CASE WHEN ended_at IS NULL AND died_at IS NULL
     THEN (SELECT ${what} FROM $lane lane WHERE lane.media = event.media AND ${where}) END`
  const isNext = `${elsewhere} AND event.id = ${nextOfLane}`
  return [...columns, `${ofLane('owner', elsewhere)} AS holder, ${ofLane('1', isNext)} AS is_next`].join()
}

/** Another process. */
export interface OtherProcess {
  readonly name: string | null
  /** Start of its long attempts (ms since the epoch) by event id. */
  readonly running: Readonly<Record<string, number>>
}

/** Who runs what, as a list needs it. Read before the rows: an event that starts in between is waiting, and counts once. */
export interface Running {
  readonly own: ReadonlyMap<number, RunningAttempt>
  /** Name of this process. */
  readonly process: string | undefined
  readonly others: ReadonlyMap<string, OtherProcess>
}

/** @throws if the row is damaged */
export function toRecord(row: EventRow, running: Running): EventRecord {
  const { trace, died } = row
  const completed: readonly string[] = JSON.parse(row.completed)
  const event = row.event === null ? undefined : reviveEvent(JSON.parse(row.event) as MediaEvent)
  const failed = reviveFailedAttempts(row.failed === null ? [] : JSON.parse(row.failed))
  const run = row.ended === null && died === null && row.due === null ? findAttempt(row, running) : undefined
  const ended = row.ended ?? died
  return {
    ...readHead(row.head),
    state: stateOf(row, run !== undefined),
    ...(event && { event }),
    receivedAt: new Date(Number(row.received)),
    attempts: row.attempts,
    completed,
    failedAttempts: row.ended === null ? failed : withoutStacks(failed),
    ...(ended === null ? openFields(row, completed) : { endedAt: new Date(Number(ended)) }),
    ...run,
    ...(trace !== null && { trace: JSON.parse(trace) }),
  }
}

function stateOf({ ended, died, due }: EventRow, isRunning: boolean): EventState {
  if (ended !== null) return 'handled'
  if (died !== null) return 'dead'
  if (due !== null) return 'retrying'
  return isRunning ? 'running' : 'waiting'
}

function openFields(
  { due, awaits = null, owed }: EventRow,
  completed: readonly string[],
): Pick<EventRecord, 'dueAt' | 'owed'> {
  const handlers: readonly string[] | undefined = owed === null ? undefined : JSON.parse(owed)
  return {
    ...(due !== null && awaits === null && { dueAt: new Date(Number(due)) }),
    ...(handlers && { owed: handlers.filter((handler) => !completed.includes(handler)) }),
  }
}

/** Returns the attempt that runs. `undefined` if none does. */
function findAttempt({ id, attempts, holder = null, is_next: isNext }: EventRow, { own, process, others }: Running) {
  const run = own.get(Number(id))
  if (run !== undefined && run.number > attempts) {
    const { number, ...shown } = run
    return { ...shown, attempts: number, ...(process !== undefined && { process }) }
  }
  if (holder === null) return undefined
  const other = others.get(holder)
  const startedAt = other?.running[id]
  if (isNext === null && startedAt === undefined) return undefined
  return {
    attempts: attempts + 1,
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(other?.name != null && { process: other.name }),
  }
}
