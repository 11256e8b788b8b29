import type { Attempt, AttemptResult } from '../inbox/inbox.ts'
import type { HandlerFailure } from '../inbox/reading.ts'
import { userFrames } from '../internal/stack.ts'
import type { RetrySchedule } from './retry.ts'

/**
 * Property of a thrown error: the delay before the next attempt (ms), `Infinity` for no further attempt. A symbol, not
 * `instanceof`: works across copies of this package and keeps unused error classes out of bundles.
 */
export const retryAfterKey = Symbol.for('media-webhooks.retry-after')

interface Failed extends HandlerFailure {
  /** As reported: a storage failure of a later handler does not change it. */
  readonly runsAgain?: boolean | undefined
}

/** Collects the failures of one attempt and decides whether and when the event is retried. */
export class AttemptFailures {
  readonly #attempt: Attempt
  readonly #retry: RetrySchedule | undefined
  readonly #failed: Failed[]
  /** Random delay of the receiver's schedule, drawn once for all handlers that fail. */
  #sharedDelayMs: number | undefined
  #delayMs: number | undefined
  /** 0 once a handler has failed for good: the skipped handlers still get their run. */
  #skippedDelayMs: 0 | undefined
  /** `false` after a storage failure, for which the handlers are not to blame. */
  counts: false | undefined

  constructor(attempt: Attempt, retry: RetrySchedule | undefined) {
    this.#attempt = attempt
    this.#retry = retry
    this.#failed = attempt.failures?.filter(({ final }) => final) ?? []
  }

  /**
   * Adds a failure. Returns the delay before the next attempt (ms), which later failures can lengthen; `undefined`
   * after a final failure.
   */
  add(handler: string, error: unknown, own?: RetrySchedule): number | undefined {
    const { number, uncounted = 0 } = this.#attempt
    const { message, retryAfterMs, stack } = describeError(error)
    const schedule = own ?? this.#retry
    const attempts = retryAfterMs === Number.POSITIVE_INFINITY ? undefined : schedule?.attempts
    const runsAgain = this.#runsAgain(attempts)
    this.#failed.push({ handler, message, stack, runsAgain })
    if (attempts === undefined) this.#skippedDelayMs = 0
    if (!runsAgain) return undefined
    const delays = number + uncounted
    if (own === undefined) this.#sharedDelayMs ??= schedule?.delayAfter(delays)
    this.#delayMs = Math.max(
      this.#delayMs ?? 0,
      (retryAfterMs ?? own?.delayAfter(delays) ?? this.#sharedDelayMs) as number,
    )
    return this.#delayMs
  }

  #runsAgain(attempts = 0): boolean {
    return this.#attempt.number < attempts || (this.counts === false && attempts > 0)
  }

  result(completed: readonly string[], isPartial: boolean | undefined): AttemptResult {
    const { counts } = this
    const delayMs = this.#delayMs ?? (isPartial ? this.#skippedDelayMs : undefined)
    const failures = this.#failed.map(({ runsAgain, final: _, ...failure }) => {
      return delayMs === undefined || runsAgain ? failure : { ...failure, final: true as const }
    })
    if (delayMs === undefined) return { status: 'dead', completed, failures }
    return { status: 'retry', delayMs, completed, failures, counts }
  }
}

/** Maximum length of a stored error (characters). Some errors carry a whole HTML page. */
const maxErrorLength = 2_000

// Handlers can throw anything, even an object whose getters throw.
function describeError(
  error: unknown,
): Pick<HandlerFailure, 'message' | 'stack'> & { readonly retryAfterMs?: number | undefined } {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    const message = text.length > maxErrorLength ? `${text.slice(0, maxErrorLength)}…` : text
    const { [retryAfterKey]: retryAfterMs } = (error ?? {}) as { readonly [retryAfterKey]?: number }
    return { message, retryAfterMs, stack: userFrames(error ?? {}) }
  } catch {
    return { message: 'an unprintable error' }
  }
}
