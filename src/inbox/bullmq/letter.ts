import type { DeadLetter } from '../inbox.ts'
import { acceptedOf, isEvent, progressOf } from './event.ts'
import type { EventJob } from './queue.ts'
import { isRefused, refusedOf } from './refused.ts'

/** The dead letter that a failed job is. `undefined`: it was removed meanwhile, or is of somebody else. */
export function letterOf(job: EventJob | undefined): DeadLetter | undefined {
  if (job === undefined) return undefined
  const { data, attemptsMade: attempts, finishedOn, failedReason } = job
  const { completed, failures = [{ handler: 'none', message: failedReason }] } = progressOf(job.progress)
  const died = { completed, failures, diedAt: new Date(finishedOn as number) }
  if (isEvent(data)) {
    const accepted = acceptedOf(data)
    return { ...accepted, key: accepted.event.key, attempts, ...died }
  }
  if (!isRefused(data)) return undefined
  const refused = refusedOf(data)
  return { key: data.key, receivedAt: refused.receivedAt, event: undefined, refused, attempts, ...died }
}
