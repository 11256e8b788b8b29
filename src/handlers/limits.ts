import { type Rule, wholeNumber } from '../internal/check-options.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import { maxWaitMs, type Timer } from '../internal/timers.ts'
import type { Handler, Rate } from './handler.ts'

export interface Limits {
  readonly concurrency?: number | undefined
  readonly rate?: Rate | undefined
}

const periods = { s: 1_000, min: 60_000, h: 3_600_000 }

const pattern = /^([1-9]\d{0,4})\/(s|min|h)$/

export const limitRules: { readonly [Name in keyof Required<Limits>]: Rule } = {
  concurrency: wholeNumber(),
  rate: [
    "a whole number up to 99999 in a second, a minute or an hour, such as '10/s', '600/min' or '1000/h'",
    (value: unknown) => typeof value === 'string' && pattern.test(value),
  ],
}

/** Maximum catch-up after a late timer (ms). */
const catchUpMs = 20

class Pace {
  readonly intervalMs: number
  /** Ring of the last starts (`performance.now()`, ms), one second's worth. */
  readonly #starts: number[] = []
  readonly #size: number
  #next = 0
  #dueAt = Number.NEGATIVE_INFINITY

  constructor(rate: Rate) {
    const [, starts, unit] = pattern.exec(rate) as unknown as [string, string, keyof typeof periods]
    this.intervalMs = periods[unit] / Number(starts)
    this.#size = Math.max(1, Math.floor(1_000 / this.intervalMs))
  }

  /** Earliest next start (`performance.now()`, ms). Even while catching up, no second exceeds the rate. */
  get nextAt(): number {
    const oldest = this.#starts[this.#next] ?? Number.NEGATIVE_INFINITY
    return Math.max(this.#dueAt, oldest + this.#size * this.intervalMs)
  }

  started(now: number): void {
    this.#dueAt = Math.max(this.#dueAt, now - catchUpMs) + this.intervalMs
    this.#starts[this.#next] = now
    this.#next = (this.#next + 1) % this.#size
  }
}

/** Longest release of an event (ms). A deploy may change the limit meanwhile. */
const maxReleaseMs = 600_000

/** Released events come due in batches, so one claim takes several. Up to this many permits and this long (ms). */
const releaseBatch = { permits: 4, ms: 1_000 }

/** Events come back slightly faster than they run, or slow claims would leave the handler idle. */
const releaseSpacing = 0.9

/** An attempt's permit to run under a limit, for which it queues. */
export class Permit {
  /** The limit has room for it: start it, or leave. */
  isGranted = false
  #wake: (() => void) | undefined

  /** Resolves when it is granted, when its handler may have been removed, and on abort. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#wake = wake
      if (signal.aborted) return wake()
      signal.addEventListener('abort', wake)
    })
  }

  wake(): void {
    this.#wake?.()
  }
}

/** Limits one handler's runs, first come, first served. A timed-out run holds its permit until it settles. */
export class Limiter {
  readonly #concurrency: number
  readonly #pace: Pace | undefined
  readonly #waiting = new Set<Permit>()
  /** Permits that are granted, and wait for a slot of the inbox. */
  readonly #granted = new Set<Permit>()
  #running = 0
  #timer: Timer | undefined
  #meanMs = 1_000
  /** When the last released event is due again (`performance.now()`, ms). */
  #releasedUntil = 0

  constructor({ concurrency = Number.POSITIVE_INFINITY, rate }: Limits) {
    this.#concurrency = concurrency
    this.#pace = rate && new Pace(rate)
  }

  /** Queues an attempt. With room, its permit is granted at once. */
  enter(): Permit {
    const permit = new Permit()
    if (this.#waiting.size === 0 && this.#waitMs() <= 0) this.#grant(permit)
    else this.#waiting.add(permit)
    this.#wake()
    return permit
  }

  /** Starts the run of a granted permit. */
  start(permit: Permit): void {
    this.#granted.delete(permit)
    this.#running++
    this.#pace?.started(performance.now())
    this.#grantNext()
  }

  leave(permit: Permit): void {
    this.#waiting.delete(permit)
    this.#granted.delete(permit)
    if (this.#waiting.size > 0) return this.#grantNext()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Wakes the waiting attempts, to notice that their handler was removed. Others wait again. */
  wakeAll(): void {
    for (const permit of [...this.#waiting]) permit.wake()
  }

  /** How long to release an event (ms). Counts half of the queue as ahead of it, or the queue could run dry. */
  releaseMs(): number {
    const now = performance.now()
    const eachMs = Math.max(this.#pace?.intervalMs ?? 0, this.#meanMs / this.#concurrency, 1)
    const backAt = Math.max(this.#releasedUntil, now + (this.#waiting.size / 2) * eachMs) + releaseSpacing * eachMs
    this.#releasedUntil = Math.min(backAt, now + maxReleaseMs)
    const stepMs = Math.min(releaseBatch.permits * eachMs, releaseBatch.ms)
    return Math.ceil(this.#releasedUntil / stepMs) * stepMs - now
  }

  /** Wraps the handler to release the permit once it settles. */
  around(handler: Handler<never, never>): Handler<never, never> {
    return (event, context) => {
      const startedAt = performance.now()
      const ended = () => this.#ended(performance.now() - startedAt)
      try {
        const result = handler(event, context)
        if (!isPromise(result)) {
          ended()
          return result
        }
        // Call `then` once: some query builders run the query on each call.
        const promise = Promise.resolve(result)
        void promise.then(ended, ended)
        return promise
      } catch (error) {
        ended()
        throw error
      }
    }
  }

  #ended(durationMs: number): void {
    this.#running--
    this.#meanMs += (durationMs - this.#meanMs) / 8
    this.#grantNext()
  }

  #grantNext(): void {
    for (const permit of this.#waiting) {
      if (this.#waitMs() > 0) return this.#wake()
      this.#waiting.delete(permit)
      this.#grant(permit)
    }
  }

  #grant(permit: Permit): void {
    this.#granted.add(permit)
    permit.isGranted = true
    permit.wake()
  }

  /** Time until the next permit can be granted (ms). `Infinity`: not before another run starts or ends. */
  #waitMs(): number {
    if (this.#running + this.#granted.size >= this.#concurrency) return Number.POSITIVE_INFINITY
    if (this.#pace === undefined) return 0
    // One at a time: two granted runs could start together.
    return this.#granted.size > 0 ? Number.POSITIVE_INFINITY : this.#pace.nextAt - performance.now()
  }

  #wake(): void {
    const waitMs = this.#waitMs()
    if (this.#timer !== undefined || waitMs === Number.POSITIVE_INFINITY) return
    const wake = () => {
      this.#timer = undefined
      this.#grantNext()
    }
    this.#timer = setTimeout(wake, Math.min(Math.ceil(waitMs), maxWaitMs))
  }
}
