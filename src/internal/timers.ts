/** Longest timer delay (ms). A longer one fires immediately. */
export const maxWaitMs = 2_147_483_647

let schedule: (run: () => void) => unknown = globalThis.setImmediate

/** Runs a function in a later event-loop turn. */
// A timer would cost 1 ms. The Edge Runtime has a setImmediate that throws.
export const later = (run: () => void): unknown => {
  try {
    return schedule(run)
  } catch {
    schedule = (run) => setTimeout(run, 0)
    return schedule(run)
  }
}

export const nextTurn = (): Promise<void> => new Promise((resolve) => later(resolve))

export type Timer = ReturnType<typeof setTimeout>

/** Resolves after `ms`, or when the signal aborts. Resolves at once if `ms` is not positive. */
export const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
  if (ms <= 0 || signal?.aborted) return
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

/** Keeps the timer from holding the process open. Only Node's timers do. */
export function unref(timer: Timer): void {
  ;(timer as { unref?: () => void }).unref?.()
}

/** Waits up to `ms` for a promise, then settles with what `late` returns or throws. */
export function within<T, Late>(ms: number, promise: Promise<T>, late: () => Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(Promise.resolve().then(late)), ms)
    const done = () => clearTimeout(timer)
    promise.then(done, done)
    promise.then(resolve, reject)
  })
}

/** Time since `startedAt` (`performance.now()`) in ms, rounded to the microsecond. */
export const msSince = (startedAt: number): number => Math.round((performance.now() - startedAt) * 1_000) / 1_000
