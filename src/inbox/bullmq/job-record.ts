import { reviveAccepted } from '../engine/stored.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { EventRecord } from '../reading.ts'
import { isEvent, progressOf, toDeadLetter } from './job-data.ts'

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
