import type { Logger } from '../../internal/logger.ts'
import type { UnfinishedEvent } from '../inbox.ts'

/** Logs the events that an inbox of several processes gave back when it closed. */
export function logHandedOver(unfinished: readonly UnfinishedEvent[], logger: Logger): void {
  for (const { event, state } of unfinished) {
    const { key, type, mediaId } = event
    logger.warn(
      { key, type, mediaId, state },
      'the inbox closed before the event was handled; another process will handle it',
    )
  }
}
