import type { Logger } from '../../internal/logger.ts'
import type { Job } from './job.ts'
import type { DeadResult } from './settling.ts'

/**
 * The number of processes that may end while they handle an event. The limit keeps an event from crashing them forever.
 */
export const maxCrashes = 10

/** Makes the result of an event after too many crashes, and logs it. */
export function cutOff({ key, completed }: Job, logger: Logger): DeadResult {
  const message = `its handling was cut off ${maxCrashes} times`
  logger.error({ key }, `an event became a dead letter: ${message}`)
  return { status: 'dead', completed, failures: [{ handler: 'none', message }] }
}
