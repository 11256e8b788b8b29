import type { Logger } from '../../internal/logger.ts'
import type { AttemptResult } from '../inbox.ts'
import type { Job, JobAttempt } from './job.ts'

/** The result of an attempt after which the event is a dead letter. */
export type DeadResult = AttemptResult & { status: 'dead' }

/** The result of an attempt after which the event waits for the next one. */
export type RetryResult = AttemptResult & { status: 'retry' }

/**
 * Records the ends of attempts in the storage of an inbox, and tries until they are recorded. `recorded` is called once
 * the record is safe, or once it is not needed because the job has ended.
 */
export interface Settling<EachJob extends Job = Job> {
  /**
   * The place of the next attempt at a failed event. `here`: this process keeps the job and makes it. `anywhere`: any
   * process can claim the event when it is due, and makes it.
   */
  readonly retries: 'here' | 'anywhere'
  /** Called before an attempt. The attempt waits for it, and is not made after a dead result. */
  begin?(attempt: JobAttempt<EachJob>): Promise<DeadResult | undefined> | undefined
  /**
   * Records that a handler has completed, while others still have to run. Absent if the record would not survive a
   * crash.
   */
  progress?(job: EachJob, completed: readonly string[]): Promise<void>
  /** Records that every handler has completed. */
  complete(attempt: JobAttempt<EachJob>, recorded: () => void): void
  /** Records that the event is a dead letter. */
  deadLetter(job: EachJob, dead: DeadResult, recorded: () => void): void
  /** Records that the next attempt is due in `delayMs`. If this process makes it, `job` already counts it. */
  retry(attempt: JobAttempt<EachJob>, retry: RetryResult, recorded: () => void): void
  /** Releases an event that `handleNow` could not handle: its sender repeats it. Only for an inbox with `handleNow`. */
  release?(job: EachJob, completed: readonly string[], recorded: () => void): void
}

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
