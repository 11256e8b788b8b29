import type { Attempt, AttemptResult } from '../inbox/inbox.ts'
import type { HandlerFailure } from '../inbox/reading.ts'
import { userFrames } from '../internal/stack.ts'
import type { RetrySchedule } from './retry.ts'

/**
 * Property of a thrown error: the delay before the next attempt (ms), `Infinity` for no further attempt. A symbol, not
 * `instanceof`: works across copies of this package and keeps unused error classes out of bundles.
 */
export const retryAfterKey = Symbol.for('media-webhooks.retry-after')

/** A failed run of a handler, and what follows from it. */
export interface NewFailure extends Pick<HandlerFailure, 'handler' | 'message' | 'stack'> {
  /** Delay before it runs again (ms). `undefined` if it doesn't, as reported: a later storage failure changes nothing. */
  readonly retryInMs: number | undefined
  /** Random delay of the receiver's schedule, drawn once for all handlers that fail in an attempt (ms). */
  readonly sharedDelayMs: number | undefined
  /** No retry can help. */
  readonly isPermanent: boolean
  /** The inbox's storage failed, for which the handlers are not to blame. */
  readonly storageFailed: boolean
}

export interface GivenFailure {
  readonly handler: string
  readonly error: unknown
  /** The handler's own schedule. */
  readonly own?: RetrySchedule | undefined
  /** The receiver's. */
  readonly shared: RetrySchedule | undefined
  readonly storageFailed?: boolean
  readonly attempt: Pick<Attempt, 'number' | 'uncounted'>
  /** Runs that failed earlier in the attempt. */
  readonly before: readonly NewFailure[]
}

/** Decides whether and when a handler that failed runs again. */
export function makeFailure({
  handler,
  error,
  own,
  shared,
  storageFailed = false,
  ...given
}: GivenFailure): NewFailure {
  const { before } = given
  const { number, uncounted = 0 } = given.attempt
  const { message, retryAfterMs, stack } = describeError(error)
  const schedule = own ?? shared
  const isPermanent = schedule === undefined || retryAfterMs === Number.POSITIVE_INFINITY
  const isBlameless = storageFailed || before.some((run) => run.storageFailed)
  const runsAgain = !isPermanent && (number < schedule.attempts || isBlameless)
  const drawn = before.find((run) => run.sharedDelayMs !== undefined)?.sharedDelayMs
  const sharedDelayMs = runsAgain && own === undefined ? (drawn ?? schedule.delayAfter(number + uncounted)) : drawn
  const delayMs = retryAfterMs ?? own?.delayAfter(number + uncounted) ?? sharedDelayMs
  const retryInMs = runsAgain ? delayMs : undefined
  return { handler, message, stack, retryInMs, sharedDelayMs, isPermanent, storageFailed }
}

/** Delay before the next attempt (ms), `undefined` if no handler runs again. */
export function longestDelay(failed: readonly NewFailure[]): number | undefined {
  const delays = failed.flatMap(({ retryInMs }) => retryInMs ?? [])
  return delays.length === 0 ? undefined : Math.max(...delays)
}

/** @param earlier final failures of earlier attempts */
export function failedResult(
  earlier: readonly HandlerFailure[],
  failed: readonly NewFailure[],
  completed: readonly string[],
  hasSkipped: boolean | undefined,
): AttemptResult {
  // Once a handler has failed for good, those that were skipped still get their run, without delay.
  const skippedDelayMs = hasSkipped && failed.some(({ isPermanent }) => isPermanent) ? 0 : undefined
  const delayMs = longestDelay(failed) ?? skippedDelayMs
  const failures = failed.map(({ handler, message, stack, retryInMs }) => {
    const failure = { handler, message, stack }
    return delayMs === undefined || retryInMs !== undefined ? failure : { ...failure, final: true as const }
  })
  if (delayMs === undefined)
    return { status: 'dead', completed, failures: [...earlier.map(({ final: _, ...failure }) => failure), ...failures] }
  const counts = failed.some(({ storageFailed }) => storageFailed) ? false : undefined
  return { status: 'retry', delayMs, completed, failures: [...earlier, ...failures], counts }
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
