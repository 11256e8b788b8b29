/** The longest that a timer can wait, in ms; one that is told to wait longer fires at once. */
export const longestWaitMs = 2_147_483_647

export type Timer = ReturnType<typeof setTimeout>

/** On Node, lets the process end though the timer is set; elsewhere timers keep nothing alive. */
export function unref(timer: Timer): void {
  ;(timer as { unref?: () => void }).unref?.()
}

/** What a promise comes to, or, when that takes longer than `ms`, what `late` returns or throws. */
export function within<T, Late>(ms: number, promise: Promise<T>, late: () => Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late())
      } catch (error) {
        reject(error)
      }
    }, ms)
    promise.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}
