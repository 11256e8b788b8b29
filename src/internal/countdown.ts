import { maxWaitMs } from './timers.ts'

/** Returns what is left of a time budget (ms), at most `maxMs`. */
export type Countdown = (maxMs?: number) => number

export function countdown(ms: number): Countdown {
  const end = performance.now() + ms
  return (maxMs = maxWaitMs) => Math.max(0, Math.min(end - performance.now(), maxMs))
}

/** Minimum budget for the last steps of closing (ms). */
const lastStepsMs = 500

/** The budget for the last steps of closing. Never zero, so events are released if the storage works. */
export const forLastSteps = (left: Countdown): Countdown => countdown(Math.max(left(), lastStepsMs))
