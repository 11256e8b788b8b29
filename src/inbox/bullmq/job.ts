import { sha256 } from '#crypto'
import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { reviveFailedAttempts } from '../engine/failed-attempts.ts'
import { reviveAccepted, unreadableKey } from '../engine/stored.ts'
import type { AcceptedEvent } from '../inbox.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadLetter, EventRecord, FailedAttempt, HandlerFailure, UnreadableDelivery } from '../reading.ts'

/** An unreadable delivery as the data of a BullMQ job, which is JSON: without dates and bytes. */
export interface UnreadableData {
  /** The key of its dead letter. */
  readonly key: string
  readonly unreadable: {
    readonly reason: string
    readonly eventId?: string | undefined
    readonly receivedAt: string
    /** In base64. */
    readonly body: string
  }
}

/** An accepted event as the data of a job. Its dates are texts when it is read from Redis. */
export interface EventData extends AcceptedEvent {
  /** The names of the handlers that it owes. Absent if an earlier version accepted it. */
  readonly owed?: readonly string[] | undefined
  /** The time of its replay, if it was an unreadable delivery. */
  readonly since?: Date | undefined
}

export type JobData = EventData | UnreadableData

/** The progress of a job in its earlier attempts. */
export interface JobProgress {
  readonly completed: readonly string[]
  /** The failures of an event. It is a dead letter, or is about to become one. */
  readonly failures?: readonly HandlerFailure[]
  /** The newest attempts that failed. */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** The number of processes that had ended while they handled the event, when it became a dead letter. */
  readonly stalls?: number
}

/** Returns `true` if a job is an event. Other programs that reach the queue can add jobs of their own. */
export function isEvent(data: unknown): data is EventData {
  const { event, receivedAt } = (data ?? {}) as Partial<AcceptedEvent>
  return typeof event?.key === 'string' && typeof receivedAt === 'string'
}

export const isUnreadable = (data: unknown): data is UnreadableData =>
  typeof (data as Partial<UnreadableData> | null)?.unreadable?.body === 'string'

export async function toUnreadableData({ body, receivedAt, ...rest }: UnreadableDelivery): Promise<UnreadableData> {
  const text = toBase64(body)
  const key = unreadableKey((await sha256(text)).slice(0, 32))
  return { key, unreadable: { ...rest, receivedAt: receivedAt.toISOString(), body: text } }
}

export function toUnreadable({ unreadable }: UnreadableData): UnreadableDelivery {
  const { reason, eventId, receivedAt, body } = unreadable
  return { reason, eventId, receivedAt: new Date(receivedAt), body: fromBase64(body) }
}

/** Reads the progress of a job. BullMQ gives 0 for a job that has none. */
export function progressOf(progress: unknown): JobProgress {
  if (typeof progress !== 'object' || progress === null) return { completed: [] }
  const { failedAttempts, ...rest } = progress as JobProgress
  return failedAttempts === undefined ? rest : { ...rest, failedAttempts: reviveFailedAttempts(failedAttempts) }
}

/** The fields of a job that a dead letter needs. */
interface FailedJob {
  readonly data: unknown
  readonly progress: unknown
  readonly attemptsMade: number
  /** In ms since the epoch. */
  readonly finishedOn?: number | undefined
  readonly failedReason: string
}

/** Makes a dead letter of a failed job. Returns `undefined` if another program added the job. */
export function toDeadLetter(job: FailedJob): DeadLetter | undefined {
  const { data, attemptsMade: attempts, finishedOn, failedReason } = job
  const progress = progressOf(job.progress)
  const { completed, failures = [{ handler: 'none', message: failedReason }], failedAttempts } = progress
  const end = { attempts, completed, failures, failedAttempts, diedAt: new Date(finishedOn as number) }
  if (isEvent(data)) {
    const accepted = reviveAccepted(data)
    return { ...accepted, key: accepted.event.key, ...end }
  }
  if (!isUnreadable(data)) return undefined
  const unreadable = toUnreadable(data)
  return { key: data.key, receivedAt: unreadable.receivedAt, event: undefined, unreadable, ...end }
}

/** A job as `readScript` returns it. A missing field is `null`. */
export type JobRow = [
  state: 'waiting' | 'running' | 'retrying' | 'dead',
  due: string | null,
  data: string,
  progress: string | null,
  attemptsMade: string | null,
  finishedOn: string | null,
  failedReason: string | null,
]

/** BullMQ keeps the time at which a job is due in the upper bits of its score. */
const scorePerMs = 0x1000

/**
 * Shows a job as an event of the inbox. Returns `undefined` if another program added it, or if it is an unreadable
 * delivery.
 */
export function toRecord([state, due, text, progressText, made, finishedOn, failedReason]: JobRow):
  | EventRecord
  | undefined {
  const data: unknown = JSON.parse(text)
  if (!isEvent(data)) return undefined
  const attemptsMade = Number(made ?? 0)
  const progress: unknown = progressText === null ? 0 : JSON.parse(progressText)
  if (state === 'dead') {
    const job = { data, progress, attemptsMade, finishedOn: Number(finishedOn), failedReason: failedReason ?? '' }
    const deadLetter = toDeadLetter(job)
    return deadLetter?.event && deadRecord({ ...deadLetter, event: deadLetter.event })
  }
  const accepted = reviveAccepted(data)
  const { key, type, mediaId } = accepted.event
  const { completed, failedAttempts = [] } = progressOf(progress)
  const attempts = attemptsMade + (state === 'running' ? 1 : 0)
  const record = { ...accepted, key, type, mediaId, state, attempts, completed, failedAttempts }
  return due === null ? record : { ...record, dueAt: new Date(Math.floor(Number(due) / scorePerMs)) }
}
