import type { AttemptResult } from '../inbox.ts'
import type { Job, JobAttempt } from './job.ts'

/** The result of an attempt after which the event is a dead letter. */
export type DeadResult = AttemptResult & { status: 'dead' }

/** The result of an attempt after which the event waits for the next one. */
export type RetryResult = AttemptResult & { status: 'retry' }

/**
 * Records the ends of attempts in the storage of an inbox, and tries until they are recorded. `recorded` is called once the
 * record is safe, or is not needed any more because the job has ended. It is no promise: on Workers, one that was made in a
 * request which has ended is never settled.
 */
export interface Settling<EachJob extends Job = Job> {
  /**
   * Where the next attempt at a failed event is made: `here`, in this process, which keeps the job, or `anywhere`, in
   * whichever process claims the event when it is due.
   */
  readonly retries: 'here' | 'anywhere'
  /** Called before an attempt, which waits for it. After a dead result the attempt is not made. */
  begin?(attempt: JobAttempt<EachJob>): Promise<DeadResult | undefined> | undefined
  /** Records that a handler has completed, while others are still to run. Absent if that would not survive a crash. */
  progress?(job: EachJob, completed: readonly string[]): Promise<void>
  /** Records that every handler has completed. */
  complete(attempt: JobAttempt<EachJob>, recorded: () => void): void
  /** Records that the event is a dead letter. */
  deadLetter(job: EachJob, dead: DeadResult, recorded: () => void): void
  /** Records that the next attempt is due in `delayMs`. If it is made here, `job` already counts it. */
  retry(attempt: JobAttempt<EachJob>, retry: RetryResult, recorded: () => void): void
  /** Releases an event that `handleNow` could not handle: its sender repeats it. Only for an inbox with `handleNow`. */
  release?(job: EachJob, completed: readonly string[], recorded: () => void): void
}
