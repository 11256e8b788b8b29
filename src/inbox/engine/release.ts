import type { Logger } from '../../internal/logger.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import type { Jobs } from './jobs.ts'

/** Releases the remaining jobs when an inbox closes, and logs them. Their attempts have ended without a record. */
export function releaseUnrecorded(jobs: Pick<Jobs, 'release'>, logger: Logger): readonly UnfinishedEvent[] {
  const unrecorded = jobs.release()
  const keys = unrecorded.map(({ event }) => event.key)
  const message = 'the inbox closed before it could record the end of these events; their handlers may run again'
  if (keys.length > 0) logger.warn({ keys }, message)
  return unrecorded
}

/** Logs each event that an inbox released when it closed. Another process can claim it. */
export function logReleased(unfinished: readonly UnfinishedEvent[], logger: Logger): void {
  for (const { event, state } of unfinished) {
    const { key, type, mediaId } = event
    logger.warn(
      { key, type, mediaId, state },
      'the inbox closed before the event was handled; another process will handle it',
    )
  }
}
