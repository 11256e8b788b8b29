import type { Job } from 'bullmq'
import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { awaitedBy, reviveAccepted, reviveFailedAttempts, unreadableKey } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import { pausedFor } from '../operations/paused.ts'
import type { DeadEvent, EventRecord, FailedAttempt, HandlerFailure, Pause, UnreadableDelivery } from '../reading.ts'

/** An unreadable delivery as the data of a BullMQ job, which is JSON: its time is a text, and its body is in base64. */
export interface UnreadableData {
  /** The key of its dead letter. */
  readonly key: string
  readonly unreadable: Record<'reason' | 'receivedAt' | 'body', string> &
    Pick<Partial<UnreadableDelivery>, 'eventId' | 'principal' | 'headers'>
  /** When a process that replayed it kept it again (ms). */
  readonly keptAgainAt?: number
}

/** An accepted event as the data of a job. Its dates are texts when it is read from Redis. */
export interface EventData extends AcceptedEvent {
  /** The names of the handlers that it owes. */
  readonly owed?: readonly string[] | undefined
  /** The time of its replay, if it was an unreadable delivery. */
  readonly since?: Date | undefined
  /** Its effects on expectations. Absent if it has none. */
  readonly changes?: ChangeParameters | undefined
  /** Absent until an attempt has ended. */
  readonly progress?: JobProgress | undefined
}

/** Effects on expectations: the last parameters of the script that applies them. */
export type ChangeParameters = readonly (string | number)[]

export type JobData = EventData | UnreadableData

/** The progress of an event in its earlier attempts. */
export interface JobProgress {
  /** The number of attempts that failed since it was accepted or replayed. BullMQ also counts others. */
  readonly attempts: number
  readonly completed: readonly string[]
  /** The number of its attempts that were cut off while it ran alone, the current one included. */
  readonly crashes: number
  /** The failures of an event. It is a dead letter, or is about to become one. */
  readonly failures?: readonly HandlerFailure[] | undefined
  /** The newest attempts that failed. */
  readonly failedAttempts: readonly FailedAttempt[]
  /** The number of processes that had ended while they handled the event, when it became a dead letter or was replayed. */
  readonly stalls: number
}

/** Returns `true` if a job is an event. Other programs that reach the queue can add jobs of their own. */
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

/** Reads the progress of an event. */
export function progressOf(data: JobData): JobProgress {
  const { progress } = data as EventData
  if (progress === undefined) return { attempts: 0, completed: [], failedAttempts: [], crashes: 0, stalls: 0 }
  return { ...progress, failedAttempts: reviveFailedAttempts(progress.failedAttempts) }
}

/** Makes a dead letter of a failed job. Returns `undefined` if another program added the job. */
export function toDeadLetter({ data, finishedOn, failedReason }: Job<unknown>): DeadEvent | undefined {
  if (!isEvent(data)) return undefined
  const { attempts, completed, failedAttempts, failures } = progressOf(data)
  const accepted = reviveAccepted(data)
  return {
    ...{ ...accepted, key: accepted.event.key, attempts, completed, failedAttempts },
    failures: failures ?? [{ handler: 'none', message: failedReason }],
    diedAt: new Date(finishedOn as number),
  }
}

/** The time within which all processes obey a pause (ms). */
const pauseLagMs = 2_000

/** The attempt of a worker, and its run in this process. */
type ActiveAttempt = Pick<Attempt, 'run'> & { readonly pauses: readonly Pause[] }

/** Shows a job as an event of the inbox. Returns `undefined` if another program added it. */
export function toRecord(job: Job<unknown>, active: ActiveAttempt | undefined): EventRecord | undefined {
  const { data, delay, processedOn = 0, processedBy } = job
  if (!isEvent(data)) return undefined
  if (job.finishedOn) {
    const deadLetter = toDeadLetter(job)
    return deadLetter && deadRecord(deadLetter)
  }
  const accepted = reviveAccepted(data)
  const { key, type, mediaId } = accepted.event
  const { attempts, completed, failedAttempts } = progressOf(data)
  const known = { ...accepted, ...awaitedBy(accepted.event), key, type, mediaId, completed, failedAttempts }
  const owed = data.owed && { owed: data.owed.filter((handler) => !completed.includes(handler)) }
  if (delay > 0) {
    // BullMQ does not say when it was delayed: at the end of its last attempt.
    const since = Math.max(processedOn, failedAttempts.at(-1)?.failedAt.getTime() ?? 0)
    return { ...known, ...owed, state: 'retrying', attempts, dueAt: new Date(since + delay) }
  }
  if (active === undefined) return { ...known, ...owed, state: 'waiting', attempts }
  const inForce = active.pauses.filter(({ handler, since }) => handler && +since + pauseLagMs < processedOn)
  const postponed = { ...known, ...owed, state: 'retrying', attempts } as const
  // Its worker finds its handlers paused, and postpones it again.
  if (active.run === undefined && owed !== undefined && pausedFor(postponed, inForce) !== undefined) return postponed
  const handler = active.run?.handler
  const run = { ...(handler !== undefined && { handler }), ...(processedBy !== undefined && { process: processedBy }) }
  return { ...known, ...owed, state: 'running', attempts: attempts + 1, startedAt: new Date(processedOn), ...run }
}
