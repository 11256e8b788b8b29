import { checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'

/** The schedule of retries: exponential backoff with full jitter. */
export interface RetryOptions {
  /**
   * Attempts in all, the first included.
   * @defaultValue 5
   */
  readonly attempts?: number
  /**
   * Maximum pause before the second attempt, in ms; it doubles with each attempt.
   * @defaultValue 1_000
   */
  readonly baseMs?: number
  /**
   * Maximum pause before any attempt, in ms.
   * @defaultValue 60_000
   */
  readonly maxMs?: number
}

const rules: Rules<RetryOptions> = { attempts: wholeNumber(), baseMs: wholeNumber(), maxMs: wholeNumber() }

/** The number of attempts, and the pauses between them. */
export interface RetrySchedule {
  /** Attempts in all, the first included. */
  readonly attempts: number
  /** Returns the pause after a failed attempt, in ms. */
  delayAfter(attempt: number): number
}

/**
 * Makes the schedule of retries.
 * @param otherwise the options that are used for those that are not given
 * @throws WebhookError `invalid_option`
 */
export function retrySchedule(options: RetryOptions = {}, otherwise: RetryOptions = {}): RetrySchedule {
  checkOptions('retry', options, rules)
  const { attempts = otherwise.attempts ?? 5, baseMs = otherwise.baseMs ?? 1_000 } = options
  const { maxMs = otherwise.maxMs ?? 60_000 } = options
  return {
    attempts,
    // Full jitter: a random share of the maximum pause, so that events that failed together are not retried together.
    delayAfter: (attempt) => Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)),
  }
}
