import type { Logger } from '../../internal/logger.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import type { Jobs } from './jobs.ts'

/**
 * Gives up the jobs that are left when an inbox closes: their attempts have ended without a record of that, which is
 * logged.
 */
export function releaseUnrecorded(jobs: Pick<Jobs, 'release'>, logger: Logger): readonly UnfinishedEvent[] {
  const unrecorded = jobs.release()
  const keys = unrecorded.map(({ event }) => event.key)
  const message = 'the inbox closed before it could record the end of these events; their handlers may run again'
  if (keys.length > 0) logger.warn({ keys }, message)
  return unrecorded
}

/** Logs the events that an inbox of several processes released when it closed. */
export function logReleased(unfinished: readonly UnfinishedEvent[], logger: Logger): void {
  for (const { event, state } of unfinished) {
    const { key, type, mediaId } = event
    logger.warn(
      { key, type, mediaId, state },
      'the inbox closed before the event was handled; another process will handle it',
    )
  }
}
