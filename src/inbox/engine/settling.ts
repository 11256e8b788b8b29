import { type Logger, throttled } from '../../internal/logger.ts'
import type { AttemptResult } from '../inbox.ts'
import type { Job, JobAttempt } from './job.ts'

export type DeadResult = AttemptResult & { status: 'dead' }

export type RetryResult = AttemptResult & { status: 'retry' }

/** Records how attempts end, retrying until it works. Calls `recorded` once that is safe, or the job has ended. */
export interface Settling<EachJob extends Job = Job> {
  /**
   * Where a failed event is retried: `here`, in this process, or `anywhere`, by any process that claims it when due.
   */
  readonly retries: 'here' | 'anywhere'
  /** Called before an attempt, which waits for it. A dead result cancels the attempt. */
  begin?(attempt: JobAttempt<EachJob>): Promise<DeadResult | undefined> | undefined
  /** Records one completed handler while others still have to run. Absent if the record would not survive a crash. */
  progress?(job: EachJob, completed: readonly string[]): Promise<void>
  complete(attempt: JobAttempt<EachJob>, recorded: () => void): void
  deadLetter(job: EachJob, dead: DeadResult, recorded: () => void): void
  /** Records that the next attempt is due in `delayMs`. If retries are `here`, `job` already counts it. */
  retry(attempt: JobAttempt<EachJob>, retry: RetryResult, recorded: () => void): void
  /** Releases an event that failed in `handleNow`; its sender will send it again. */
  release?(job: EachJob, completed: readonly string[], recorded: () => void): void
}

/** Crashes an event may cause before it becomes a dead letter, so it can't crash processes forever. */
export const maxCrashes = 10

/** Makes and logs the dead result of an event that crashed too often. */
export function cutOff({ key, completed }: Job, logger: Logger): DeadResult {
  const message = `its handling was cut off ${maxCrashes} times`
  throttled(logger).error({ key }, `an event became a dead letter: ${message}`)
  return { status: 'dead', completed, failures: [{ handler: 'none', message }] }
}
