import type { LogLevel, SafeLogger } from '../internal/logger.ts'
import { unref } from '../internal/timers.ts'
import type { DeliveryOutcome } from './acknowledgement.ts'

/** The time for which rejections of one kind share a line, in ms. */
const windowMs = 1_000

/** The rejections of one kind since the last line about them. */
interface LogWindow {
  readonly level: LogLevel
  count: number
  newest: Error | undefined
  /** The end of the current window, in ms of `performance.now`. */
  readonly endsAt: number
}

/**
 * Limits the log lines of rejected deliveries, since anyone can send any number of them. The first one of a kind is logged
 * by the caller. Later ones share a line for each second in which there are any, with their number and the newest reason.
 */
export class RejectionLog {
  readonly #logger: SafeLogger
  readonly #windows = new Map<DeliveryOutcome, LogWindow>()

  constructor(logger: SafeLogger) {
    this.#logger = logger
  }

  /** Returns `true` if the caller logs the rejection. Otherwise it is counted. */
  isFirst(outcome: DeliveryOutcome, level: LogLevel, error: Error): boolean {
    const window = this.#windows.get(outcome)
    // On Workers the timer may have ended with its request.
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

  /** Writes the line of a window. Returns `false` if there is nothing to write. */
  #logWindow(outcome: DeliveryOutcome, { level, count, newest }: LogWindow): boolean {
    if (newest === undefined) return false
    const more = count === 1 ? '1 more delivery was' : `${count} more deliveries were`
    const message = `${more} rejected within ${windowMs / 1_000} s as ${outcome}; the newest: ${reasonOf(newest)}`
    this.#logger[level]({ outcome, count }, message)
    return true
  }
}

/** Returns the reason of a rejection. A text as the cause is a longer reason, for logs and hooks only. */
export const reasonOf = ({ message, cause }: Error): string => (typeof cause === 'string' ? cause : message)
