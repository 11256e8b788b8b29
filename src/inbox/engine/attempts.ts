import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import type { Attempt, AttemptResult, UnfinishedEvent } from '../inbox.ts'

export type DeadResult = AttemptResult & { status: 'dead' }

export type RetryResult = AttemptResult & { status: 'retry' }

/** Crashes an event may cause before it becomes a dead letter, so it can't crash processes forever. */
export const maxCrashes = 10

/** Stops an event's running handler for an operator: the run fails, like a timeout. Returns `false` if none runs. */
export function stopRun(attempt: Attempt | undefined): boolean {
  const run = attempt?.run
  run?.expire(new WebhookError('stopped', 'stopped by an operator'))
  return run !== undefined
}

/** Logs each event that a closing inbox released. Another process can claim it. */
export function logReleased(unfinished: readonly UnfinishedEvent[], logger: Logger): void {
  for (const { event, state } of unfinished) {
    const { key, type, mediaId } = event
    logger.warn(
      { key, type, mediaId, state },
      'the inbox closed before the event was handled; another process will handle it',
    )
  }
}
