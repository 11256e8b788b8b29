import type { Job } from 'bullmq'
import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { awaitedBy, reviveAccepted, reviveFailedAttempts, unreadableKey } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import { pausedFor } from '../operations/paused.ts'
import type { DeadEvent, EventRecord, FailedAttempt, HandlerFailure, Pause, UnreadableDelivery } from '../reading.ts'

/** Job data of an unreadable delivery. It is JSON: the time is an ISO string, the body base64. */
export interface UnreadableData {
  readonly key: string
  readonly unreadable: Record<'reason' | 'receivedAt' | 'body', string> &
    Omit<Partial<UnreadableDelivery>, 'reason' | 'receivedAt' | 'body'>
  /** When a failed replay stored it again (Unix ms). */
  readonly keptAgainAt?: number
}

/** Job data of an event. Dates are strings once read back from Redis. */
export interface EventData extends AcceptedEvent {
  /** Handlers still to run. */
  readonly owed?: readonly string[] | undefined
  /** When it was replayed. Set if it was an unreadable delivery. */
  readonly since?: Date | undefined
  readonly changes?: ChangeParameters | undefined
  /** Absent before the first attempt ends. */
  readonly progress?: JobProgress | undefined
}

/** Expectation changes, as the trailing arguments of the Lua script that applies them. */
export type ChangeParameters = readonly (string | number)[]

export type JobData = EventData | UnreadableData

/** What earlier attempts of an event left behind. */
export interface JobProgress {
  /** Failed attempts since acceptance or replay. BullMQ's own counter includes others. */
  readonly attempts: number
  readonly completed: readonly string[]
  /** Attempts cut off while it ran alone, including the current one. */
  readonly crashes: number
  /** Set once the event is, or is about to become, a dead letter. */
  readonly failures?: readonly HandlerFailure[] | undefined
  readonly failedAttempts: readonly FailedAttempt[]
  /** BullMQ's stall count when the event died or was replayed: processes that ended while handling it. */
  readonly stalls: number
}

/** True for an event's job. Other programs can add jobs to the queue too. */
export function isEvent(data: unknown): data is EventData {
  const { event, receivedAt } = (data ?? {}) as Partial<AcceptedEvent>
  return typeof event?.key === 'string' && typeof receivedAt === 'string'
}

export const isUnreadable = (data: unknown): data is UnreadableData =>
  typeof (data as Partial<UnreadableData> | null)?.unreadable?.body === 'string'

export async function toUnreadableData({ body, receivedAt, ...rest }: UnreadableDelivery): Promise<UnreadableData> {
  const key = await unreadableKey({ ...rest, body })
  return { key, unreadable: { ...rest, receivedAt: receivedAt.toISOString(), body: toBase64(body) } }
}

export function toUnreadable({ unreadable }: UnreadableData): UnreadableDelivery {
  const { receivedAt, body, eventId, ...rest } = unreadable
  return { ...rest, eventId, receivedAt: new Date(receivedAt), body: fromBase64(body) }
}

export function readProgress(data: JobData): JobProgress {
  const { progress } = data as EventData
  if (progress === undefined) return { attempts: 0, completed: [], failedAttempts: [], crashes: 0, stalls: 0 }
  return { ...progress, failedAttempts: reviveFailedAttempts(progress.failedAttempts) }
}

/** Reads a failed job as a dead letter. `undefined` for another program's job. */
export function toDeadLetter({ data, finishedOn, failedReason }: Job<unknown>): DeadEvent | undefined {
  if (!isEvent(data)) return undefined
  const { attempts, completed, failedAttempts, failures } = readProgress(data)
  const accepted = reviveAccepted(data)
  return {
    ...{ ...accepted, key: accepted.event.key, attempts, completed, failedAttempts },
    failures: failures ?? [{ handler: 'none', message: failedReason }],
    diedAt: new Date(finishedOn as number),
  }
}

/** How long a pause may take to reach every process (ms). */
const pauseLagMs = 2_000

/** An active job's run, if it is in this process, and the current pauses. */
type ActiveAttempt = Pick<Attempt, 'run'> & { readonly pauses: readonly Pause[] }

/** Reads a job as an event record. `undefined` for another program's job. */
export function toRecord(job: Job<unknown>, active: ActiveAttempt | undefined): EventRecord | undefined {
  const { data, delay, processedOn = 0, processedBy } = job
  if (!isEvent(data)) return undefined
  if (job.finishedOn) {
    const deadLetter = toDeadLetter(job)
    return deadLetter && deadRecord(deadLetter)
  }
  const accepted = reviveAccepted(data)
  const { key, type, mediaId } = accepted.event
  const { attempts, completed, failedAttempts } = readProgress(data)
  const known = { ...accepted, ...awaitedBy(accepted.event), key, type, mediaId, completed, failedAttempts }
  const owed = data.owed && { owed: data.owed.filter((handler) => !completed.includes(handler)) }
  if (delay > 0) {
    // BullMQ stores no start of the delay. It begins when the last attempt ends.
    const since = Math.max(processedOn, failedAttempts.at(-1)?.failedAt.getTime() ?? 0)
    return { ...known, ...owed, state: 'retrying', attempts, dueAt: new Date(since + delay) }
  }
  if (active === undefined) return { ...known, ...owed, state: 'waiting', attempts }
  const inForce = active.pauses.filter(({ handler, since }) => handler && +since + pauseLagMs < processedOn)
  const released = { ...known, ...owed, state: 'retrying', attempts } as const
  // Its worker is about to find the handlers paused and release it.
  if (active.run === undefined && owed !== undefined && pausedFor(released, inForce) !== undefined) return released
  const handler = active.run?.handler
  const run = { ...(handler !== undefined && { handler }), ...(processedBy !== undefined && { process: processedBy }) }
  return { ...known, ...owed, state: 'running', attempts: attempts + 1, startedAt: new Date(processedOn), ...run }
}
