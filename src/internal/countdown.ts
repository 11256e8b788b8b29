import { longestWaitMs } from './timers.ts'

/** Returns what is left of a time that several steps share, in ms, and at most `mostMs` for the next one. */
export type Countdown = (mostMs?: number) => number

export function countdown(ms: number): Countdown {
  const end = performance.now() + ms
  return (mostMs = longestWaitMs) => Math.max(0, Math.min(end - performance.now(), mostMs))
}

/** The time that the last steps of closing have together in any case, in ms. */
const lastStepsMs = 500

/** Gives the last steps of closing what is left, so that a storage that is well gets its events back in any case. */
export const forLastSteps = (left: Countdown): Countdown => countdown(Math.max(left(), lastStepsMs))
