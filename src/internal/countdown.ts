import { maxWaitMs } from './timers.ts'

/** Returns the rest of a time that several steps share, in ms, and at most `maxMs` for the next one. */
export type Countdown = (maxMs?: number) => number

export function countdown(ms: number): Countdown {
  const end = performance.now() + ms
  return (maxMs = maxWaitMs) => Math.max(0, Math.min(end - performance.now(), maxMs))
}

/** The time that the last steps of closing have together in any case, in ms. */
const lastStepsMs = 500

/**
 * Gives the last steps of closing the time that is left, so that a storage that works gets its events back in any case.
 */
export const forLastSteps = (left: Countdown): Countdown => countdown(Math.max(left(), lastStepsMs))
