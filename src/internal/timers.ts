/** Maximum time of a timer, in ms. A timer with a longer time fires immediately. */
export const maxWaitMs = 2_147_483_647

let schedule: (run: () => void) => unknown = globalThis.setImmediate

/** Runs a function in a later turn of the event loop. */
// A timer would cost a millisecond. The Edge Runtime has a setImmediate that throws.
export const later = (run: () => void): unknown => {
  try {
    return schedule(run)
  } catch {
    schedule = (run) => setTimeout(run, 0)
    return schedule(run)
  }
}

/** Resolves in a later turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => later(resolve))

export type Timer = ReturnType<typeof setTimeout>

/** Waits for a time, or not at all if it is over. */
export const sleep = async (ms: number): Promise<void> => {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
}

/** Lets the process end although the timer is set. Only Node's timers keep it alive. */
export function unref(timer: Timer): void {
  ;(timer as { unref?: () => void }).unref?.()
}

/**
 * Waits for a promise for up to `ms`. After that, it calls `late`, and resolves with its result or rejects with its
 * error.
 */
export function within<T, Late>(ms: number, promise: Promise<T>, late: () => Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(Promise.resolve().then(late)), ms)
    promise.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}

/** Time since `performance.now()` was `startedAt` (ms), to the microsecond. */
export const msSince = (startedAt: number): number => Math.round((performance.now() - startedAt) * 1_000) / 1_000
