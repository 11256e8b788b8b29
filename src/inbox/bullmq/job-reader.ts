import { UnrecoverableError } from 'bullmq'
import type { MediaEvent } from '../../events/catalogue.ts'
import { reviveAccepted } from '../engine/stored.ts'
import type { AcceptedEvent, InboxHost } from '../inbox.ts'
import type { UnreadableDelivery } from '../reading.ts'
import { isEvent, isUnreadable, toUnreadable } from './job-data.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** Reads the event of a job. `undefined`: the event is known already. A job without an event fails permanently. */
export type ReadJob = (job: EventJob) => Promise<AcceptedEvent | undefined>

export function jobReader(queue: EventQueue, { parse, handlersOf, logger }: InboxHost): ReadJob {
  const parseAgain = async (unreadable: UnreadableDelivery): Promise<MediaEvent> => {
    try {
      return await parse(unreadable)
    } catch (error) {
      throw new UnrecoverableError(error instanceof Error ? error.message : String(error))
    }
  }

  return async (job) => {
    const { data } = job
    if (isEvent(data)) return reviveAccepted(data)
    if (!isUnreadable(data)) {
      logger.error({ job: job.id }, 'a job in the queue is no event; it stays among the failed jobs')
      throw new UnrecoverableError('no event of this inbox')
    }
    // A dead letter that another program, such as Bull Board, has retried.
    const unreadable = toUnreadable(data)
    const accepted = { event: await parseAgain(unreadable), receivedAt: unreadable.receivedAt }
    const converted = await queue.convert(job, { ...accepted, owed: handlersOf(accepted.event) })
    return converted === 'converted' ? accepted : undefined
  }
}
