import { setImmediate as turn } from 'node:timers/promises'
import { vi } from 'vitest'

/** Lets everything that is not waiting for time happen. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await turn()
}

/** Runs in fake time until the promise settles. Resolves with the time that this took, in ms. */
export async function elapsed(run: () => PromiseLike<unknown>): Promise<number> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] })
  try {
    let hasSettled = false
    const startedAt = performance.now()
    const end = () => {
      hasSettled = true
    }
    run().then(end, end)
    for (await settle(); !hasSettled; await settle()) await vi.advanceTimersToNextTimerAsync()
    return Math.round(performance.now() - startedAt)
  } finally {
    vi.useRealTimers()
  }
}

/** The code of the error that a function throws. */
function codeOf(run: () => unknown): unknown {
  try {
    return run() && undefined
  } catch (error) {
    return (error as { code?: unknown }).code
  }
}

/** `required` if the function throws because an option is missing. */
export const required = (run: () => unknown) => (codeOf(run) === 'invalid_option' ? 'required' : 'optional')

/** Observes the default of an option. Returns the value, or the words of the table. */
export type Observe = () => unknown

/** Observes the default of each option in a table. */
export type Observations = Readonly<Record<string, Observe>>

export const never = () => new Promise<never>(() => {})
