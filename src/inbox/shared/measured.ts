import { isPromise, type MaybePromise } from '../../internal/maybe-promise.ts'
import type { InboxHost } from '../inbox.ts'

/** Runs a step, and reports how long it took. */
export function measure<Result>(
  measured: NonNullable<InboxHost['measured']>,
  step: string,
  run: () => MaybePromise<Result>,
): MaybePromise<Result> {
  const startedAt = performance.now()
  const ended = (error?: unknown) => measured(step, performance.now() - startedAt, error)
  try {
    const result = run()
    if (!isPromise(result)) {
      ended()
      return result
    }
    return result.then(
      (value) => {
        ended()
        return value
      },
      (error) => {
        ended(error)
        throw error
      },
    )
  } catch (error) {
    ended(error)
    throw error
  }
}
