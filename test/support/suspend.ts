import { onTestFinished, vi } from 'vitest'

let suspendedMs = 0

/**
 * Makes the monotonic clock read `ms` more than the timers know of, until the end of the test: as in a process that was
 * suspended for that time, whose timers are late.
 */
export function suspend(ms: number): void {
  suspendedMs = ms
  if (vi.isMockFunction(performance.now)) return
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + suspendedMs)
  onTestFinished(() => clock.mockRestore())
}

/** Suspends the process: no timer fires for `ms`, by the real clock. */
export const block = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
