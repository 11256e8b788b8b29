import { onTestFinished } from 'vitest'

const tickMs = 10

/**
 * Measures a time by the timers of this process, in ms. On a busy machine they are as late as the timers of the code
 * under test, so a limit also holds there. Time in which this process computes does not count.
 * @returns a function that returns the time so far
 */
export function ownTime(): () => number {
  let ticks = 0
  everyTick(() => {
    ticks++
  })
  return () => ticks * tickMs
}

/**
 * Measures the time that this process computes, in ms. Other processes of a busy machine do not lengthen it.
 * @returns a function that returns the time since the start, or since the last call
 */
export function computingTime(): () => number {
  let before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    return (user + system) / 1_000
  }
}

/**
 * Measures the longest time that this process computes without a pause, in ms.
 * @returns a function that returns the longest so far
 */
export function longestComputing(): () => number {
  let maxMs = 0
  const computed = computingTime()
  everyTick(() => {
    maxMs = Math.max(maxMs, computed())
  })
  return () => maxMs
}

function everyTick(run: () => void): void {
  const timer = setInterval(run, tickMs)
  onTestFinished(() => clearInterval(timer))
}
