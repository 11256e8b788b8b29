import type { Attempt, AttemptResult } from '../inbox/inbox.ts'
import type { HandlerFailure } from '../inbox/reading.ts'
import { userFrames } from '../internal/stack.ts'
import type { RetrySchedule } from './retry.ts'

/**
 * The property of an error with the pause before the next attempt, in ms. `Infinity`: the handler does not run again. Each
 * copy of this package has the same key, and a user who throws no such error does not bundle their classes.
 */
export const retryAfterKey = Symbol.for('media-webhooks.retry-after')

/** A failure, and the number of attempts that its handler has in all. Absent if it does not run again. */
interface Failed extends HandlerFailure {
  readonly attempts?: number | undefined
}

/** The failures of one attempt, and what follows from them. */
export class AttemptFailures {
  readonly #attempt: Attempt
  readonly #retry: RetrySchedule | undefined
  readonly #failed: Failed[]
  /** The pause of the receiver's schedule. It is random, so it is drawn once, however many handlers fail. */
  #sharedDelayMs: number | undefined
  #delayMs: number | undefined
  /** 0 once a handler has failed permanently: those that were left out keep their run. */
  #skippedDelayMs: 0 | undefined
  /** `false` once the inbox's own storage has failed. */
  counts: false | undefined

  /** @param retry the receiver's schedule, if it retries */
  constructor(attempt: Attempt, retry: RetrySchedule | undefined) {
    this.#attempt = attempt
    this.#retry = retry
    this.#failed = attempt.failures?.filter(({ final }) => final) ?? []
  }

  /**
   * Adds the failure of a handler. Returns the pause before the next attempt as far as it is known, in ms; `undefined` if
   * the handler does not run again.
   * @param own the handler's own schedule
   */
  add(handler: string, error: unknown, own?: RetrySchedule): number | undefined {
    const { number, uncounted = 0 } = this.#attempt
    const { message, retryAfterMs, stack } = describeError(error)
    const schedule = own ?? this.#retry
    const attempts = retryAfterMs === Number.POSITIVE_INFINITY ? undefined : schedule?.attempts
    this.#failed.push({ handler, message, stack, attempts })
    if (attempts === undefined) this.#skippedDelayMs = 0
    if (!this.#runsAgain(attempts)) return undefined
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

  /**
   * Returns the result of the attempt: the event is retried while one of the handlers runs again.
   * @param isPartial `true` if handlers were left out
   */
  result(completed: readonly string[], isPartial: boolean | undefined): AttemptResult {
    const { counts } = this
    const delayMs = this.#delayMs ?? (isPartial ? this.#skippedDelayMs : undefined)
    const failures = this.#failed.map(({ attempts, final: _, ...failure }) => {
      return delayMs === undefined || this.#runsAgain(attempts) ? failure : { ...failure, final: true as const }
    })
    if (delayMs === undefined) return { status: 'dead', completed, failures }
    return { status: 'retry', delayMs, completed, failures, counts }
  }
}

/** Maximum length of a stored error, in characters: some errors carry a whole page. */
const maxErrorLength = 2_000

// A handler can throw anything, even an object whose properties throw.
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
