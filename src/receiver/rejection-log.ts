import type { LogLevel, SafeLogger } from '../internal/logger.ts'
import { unref } from '../internal/timers.ts'
import type { DeliveryOutcome } from './acknowledgement.ts'

/** Rejections with the same outcome share a log line this long (ms). */
const windowMs = 1_000

interface LogWindow {
  readonly level: LogLevel
  count: number
  newest: Error | undefined
  /** `performance.now()`, ms. */
  readonly endsAt: number
}

/**
 * Throttles the log lines of rejections, which anyone can cause at any rate. The caller logs the first one of an
 * outcome; the rest share a line per second, with their count and the newest reason.
 */
export class RejectionLog {
  readonly #logger: SafeLogger
  readonly #windows = new Map<DeliveryOutcome, LogWindow>()

  constructor(logger: SafeLogger) {
    this.#logger = logger
  }

  /** Returns `true` if the caller must log the rejection, otherwise counts it. */
  isFirst(outcome: DeliveryOutcome, level: LogLevel, error: Error): boolean {
    const window = this.#windows.get(outcome)
    // On Workers the timer may have died with its request.
    if (window !== undefined && performance.now() < window.endsAt + windowMs) {
      window.count++
      window.newest = error
      return false
    }
    if (window !== undefined) this.#logWindow(outcome, window)
    this.#begin(outcome, level)
    return true
  }

  #begin(outcome: DeliveryOutcome, level: LogLevel): void {
    const window: LogWindow = { level, count: 0, newest: undefined, endsAt: performance.now() + windowMs }
    this.#windows.set(outcome, window)
    unref(setTimeout(() => this.#end(outcome, window), windowMs))
  }

  #end(outcome: DeliveryOutcome, window: LogWindow): void {
    if (this.#windows.get(outcome) !== window) return
    this.#windows.delete(outcome)
    if (this.#logWindow(outcome, window)) this.#begin(outcome, window.level)
  }

  /** Returns `false` if there is nothing to log. */
  #logWindow(outcome: DeliveryOutcome, { level, count, newest }: LogWindow): boolean {
    if (newest === undefined) return false
    const more = count === 1 ? '1 more delivery was' : `${count} more deliveries were`
    const message = `${more} rejected within ${windowMs / 1_000} s as ${outcome}; the newest: ${reasonOf(newest)}`
    this.#logger[level]({ outcome, count }, message)
    return true
  }
}

/** A string `cause` is a more detailed reason, for logs and hooks only. */
export const reasonOf = ({ message, cause }: Error): string => (typeof cause === 'string' ? cause : message)
