import { UnrecoverableError } from 'bullmq'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { Logger } from '../../internal/logger.ts'
import type { AcceptedEvent, ReadRefused, RefusedDelivery } from '../inbox.ts'
import { acceptedOf, isEvent } from './event.ts'
import type { EventJob, EventQueue } from './queue.ts'
import { isRefused, refusedOf } from './refused.ts'

export interface JobReaderParts {
  readonly events: EventQueue
  readonly readRefused: ReadRefused
  readonly logger: Logger
}

/** The event of a job that was handed out. `undefined`: it is known already. A job without one fails for good. */
export type ReadJob = (job: EventJob) => Promise<AcceptedEvent | undefined>

export function jobReader({ events, readRefused, logger }: JobReaderParts): ReadJob {
  const readAgain = async (refused: RefusedDelivery): Promise<MediaEvent> => {
    try {
      return await readRefused(refused)
    } catch (error) {
      throw new UnrecoverableError(error instanceof Error ? error.message : String(error))
    }
  }

  return async (job) => {
    const { data } = job
    if (isEvent(data)) return acceptedOf(data)
    if (!isRefused(data)) {
      logger.error({ job: job.id }, 'a job in the queue is no event; it is left among its failed ones')
      throw new UnrecoverableError('no event of this inbox')
    }
    // A dead letter that was retried from elsewhere, such as Bull Board.
    const refused = refusedOf(data)
    const accepted = { event: await readAgain(refused), receivedAt: refused.receivedAt }
    return (await events.become(job, accepted)) === 'event' ? accepted : undefined
  }
}
