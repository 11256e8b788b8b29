import { UnrecoverableError } from 'bullmq'
import { reviveAccepted } from '../engine/stored.ts'
import type { AcceptedEvent, InboxHost } from '../inbox.ts'
import { parseAgain } from '../operations/dead-letters.ts'
import { isEvent, isUnreadable, toUnreadable } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/**
 * Reads the event of a job. Returns `undefined` if the event is known already. A job without an event fails
 * permanently.
 */
export type ReadJob = (job: EventJob) => Promise<AcceptedEvent | undefined>

export function jobReader(queue: EventQueue, host: InboxHost): ReadJob {
  return async (job) => {
    const { data } = job
    if (isEvent(data)) return reviveAccepted(data)
    if (!isUnreadable(data)) {
      host.logger.error({ job: job.id }, 'a job in the queue is no event; it stays among the failed jobs')
      throw new UnrecoverableError('no event of this inbox')
    }
    // Another program, such as Bull Board, has retried the dead letter.
    const parsed = await parseAgain(host, toUnreadable(data)).catch((error: unknown) => {
      throw new UnrecoverableError(error instanceof Error ? error.message : String(error))
    })
    return (await queue.convert(job, parsed)) === 'converted' ? parsed : undefined
  }
}
