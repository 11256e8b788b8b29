import type { Job } from 'bullmq'
import { sha256 } from '#crypto'
import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { reviveAccepted, reviveFailedAttempts, unreadableKey } from '../engine/stored.ts'
import type { AcceptedEvent, Expectation, Expectations, InboxHost } from '../inbox.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { DeadLetter, EventRecord, FailedAttempt, HandlerFailure, UnreadableDelivery } from '../reading.ts'

/** An unreadable delivery as the data of a BullMQ job, which is JSON: its time is a text, and its body is in base64. */
export interface UnreadableData {
  /** The key of its dead letter. */
  readonly key: string
  readonly unreadable: Record<'reason' | 'receivedAt' | 'body', string> &
    Pick<Partial<UnreadableDelivery>, 'eventId' | 'principal'>
}

/** An accepted event as the data of a job. Its dates are texts when it is read from Redis. */
export interface EventData extends AcceptedEvent {
  /** The names of the handlers that it owes. Absent if an earlier version accepted it. */
  readonly owed?: readonly string[] | undefined
  /** The time of its replay, if it was an unreadable delivery. */
  readonly since?: Date | undefined
  /** Its effects on expectations, which are stored in the same step as the event. Absent if it has none. */
  readonly effects?: EventEffects | undefined
}

interface EventEffects extends Expectations {
  readonly begins: readonly StoredExpectation[]
}

/** An expectation with the handlers that its overdue event owes. */
export interface StoredExpectation extends Expectation {
  readonly overdue: EventData
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

/** Adds the handlers that an event owes, and its effects. */
export function toEventData(
  { handlersOf, expectations }: Pick<InboxHost, 'handlersOf' | 'expectations'>,
  accepted: AcceptedEvent,
): EventData {
  const owing = { ...accepted, owed: handlersOf(accepted.event) }
  const effects = expectations?.(accepted)
  if (effects === undefined) return owing
  const begins = effects.begins.map((begin) => ({
    ...begin,
    overdue: { ...begin.overdue, owed: handlersOf(begin.overdue.event) },
  }))
  return { ...owing, effects: { ...effects, begins } }
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
  const key = unreadableKey((await sha256(text)).slice(0, 32), rest.principal)
  return { key, unreadable: { ...rest, receivedAt: receivedAt.toISOString(), body: text } }
}

export function toUnreadable({ unreadable }: UnreadableData): UnreadableDelivery {
  const { reason, eventId, principal, receivedAt, body } = unreadable
  return { reason, eventId, principal, receivedAt: new Date(receivedAt), body: fromBase64(body) }
}

/** Reads the progress of a job. BullMQ gives 0 for a job that has none. */
export function progressOf(progress: unknown): JobProgress {
  if (typeof progress !== 'object' || progress === null) return { completed: [] }
  const { failedAttempts, ...rest } = progress as JobProgress
  return failedAttempts === undefined ? rest : { ...rest, failedAttempts: reviveFailedAttempts(failedAttempts) }
}

/** The fields of a job that a dead letter needs. */
type FailedJob = Pick<Job<unknown>, 'data' | 'progress' | 'attemptsMade' | 'finishedOn' | 'failedReason'>

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

/** A job as `readScript` returns it. Its times are in ms since the epoch, and its data and progress are JSON. */
export type JobRow = [
  state: 'waiting' | 'running' | 'retrying' | 'dead',
  dueAt: number | null,
  data: string,
  progress: string,
  attemptsMade: number,
  finishedOn: number,
  failedReason: string,
  processedOn: number,
  processedBy: string,
]

/**
 * Shows a job as an event of the inbox. Returns `undefined` if another program added it, or if it is an unreadable
 * delivery.
 */
export function toRecord(row: JobRow): EventRecord | undefined {
  const [state, dueAt, dataText, progressText, attemptsMade, finishedOn, failedReason, processedOn, processedBy] = row
  const data: unknown = JSON.parse(dataText)
  if (!isEvent(data)) return undefined
  const progress: Job['progress'] = JSON.parse(progressText)
  if (state === 'dead') {
    const deadLetter = toDeadLetter({ data, progress, attemptsMade, finishedOn, failedReason })
    return deadLetter?.event && deadRecord({ ...deadLetter, event: deadLetter.event })
  }
  const accepted = reviveAccepted(data)
  const { key, type, mediaId } = accepted.event
  const { completed, failedAttempts = [] } = progressOf(progress)
  const attempts = attemptsMade + (state === 'running' ? 1 : 0)
  return {
    ...{ ...accepted, key, type, mediaId, state, attempts, completed, failedAttempts },
    ...(dueAt !== null && { dueAt: new Date(dueAt) }),
    ...(state === 'running' && processedOn > 0 && { startedAt: new Date(processedOn) }),
    // Workers of an earlier version have no name.
    ...(state === 'running' && processedBy !== '' && { process: processedBy }),
  }
}
