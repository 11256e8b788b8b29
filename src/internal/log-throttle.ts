import { unref } from './timers.ts'

/** Lines of one kind share one line this long (ms). */
const windowMs = 1_000

interface Window {
  /** `performance.now()`, ms. */
  readonly endsAt: number
  count: number
  logRest: ((count: number) => void) | undefined
}

/**
 * Throttles log lines that deliveries can cause at any rate. The caller logs the first of a kind; the rest share a line
 * per second.
 */
export class LogThrottle {
  readonly #windows = new Map<string, Window>()

  /**
   * Returns `true` if the caller must log the line, otherwise counts it.
   * @param kind one of a bounded number
   * @param logRest logs the lines that were counted. Only the newest one is called
   */
  isFirst(kind: string, logRest: (count: number) => void): boolean {
    const now = performance.now()
    const window = this.#windows.get(kind)
    // A late timer: on Workers it may have died with its request.
    const graceMs = window?.logRest === undefined ? 0 : windowMs
    if (window === undefined || now >= window.endsAt + graceMs) {
      window?.logRest?.(window.count)
      this.#windows.set(kind, { endsAt: now + windowMs, count: 0, logRest: undefined })
      return true
    }
    if (window.logRest === undefined) unref(setTimeout(() => this.#end(kind, window), window.endsAt - now))
    window.count++
    window.logRest = logRest
    return false
  }

  #end(kind: string, window: Window): void {
    if (this.#windows.get(kind) !== window) return
    this.#windows.set(kind, { endsAt: performance.now() + windowMs, count: 0, logRest: undefined })
    window.logRest?.(window.count)
  }
}
