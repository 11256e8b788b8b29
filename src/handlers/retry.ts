import { checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'

/** Retries: exponential backoff with full jitter. */
export interface RetryOptions {
  /**
   * Attempts in total, the first included.
   * @defaultValue 5
   */
  readonly attempts?: number
  /**
   * Maximum delay before the second attempt, in ms; doubles with each attempt.
   * @defaultValue 1_000
   */
  readonly baseMs?: number
  /**
   * Maximum delay before any attempt, in ms.
   * @defaultValue 60_000
   */
  readonly maxMs?: number
}

const rules: Rules<RetryOptions> = { attempts: wholeNumber(), baseMs: wholeNumber(), maxMs: wholeNumber() }

export interface RetrySchedule {
  readonly attempts: number
  /** Delay after a failed attempt (ms). Random. */
  delayAfter(attempt: number): number
}

/** @throws WebhookError `invalid_option` */
export function retrySchedule(options: RetryOptions = {}, otherwise: RetryOptions = {}): RetrySchedule {
  checkOptions('retry', options, rules)
  const { attempts = otherwise.attempts ?? 5, baseMs = otherwise.baseMs ?? 1_000 } = options
  const { maxMs = otherwise.maxMs ?? 60_000 } = options
  return {
    attempts,
    // Full jitter spreads out the retries of events that failed together.
    delayAfter: (attempt) => Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)),
  }
}
