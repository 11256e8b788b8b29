import { setTimeout as pause } from 'node:timers/promises'
import type { MaybePromise } from '../../../internal/maybe-promise.ts'
import type { Screen } from '../../shared/screen.ts'

interface DeadLetterAction {
  readonly keys: readonly string[]
  /** Replays or discards a batch. Returns the keys that existed. */
  readonly act: (keys: readonly string[]) => MaybePromise<readonly string[]>
  /** Past participle, for messages. */
  readonly past: string
  readonly perSecond: number | undefined
}

interface DeadLetterResult {
  readonly done: readonly string[]
  readonly missing: readonly string[]
}

/** Dead letters per commit. A server with the same SQLite file waits for each commit. */
const batchSize = 100

/** Delay between commits (ms), for that server to commit. */
const delayMs = 10

/** Acts in batches with a progress line, and notes how far it came if it fails or is interrupted. */
export async function eachDeadLetter(
  { keys, act, past, perSecond }: DeadLetterAction,
  screen: Screen,
): Promise<DeadLetterResult> {
  const { signal } = screen
  const done: string[] = []
  const missing: string[] = []
  const size = Math.min(batchSize, perSecond ?? batchSize)
  const startedAt = performance.now()
  try {
    for (let start = 0; start < keys.length; start += size) {
      const dueAt = perSecond === undefined ? 0 : startedAt + (start * 1_000) / perSecond
      // Yield first: Node handles Ctrl-C only between event-loop turns.
      await pause(start === 0 ? 0 : Math.max(delayMs, dueAt - performance.now()), undefined, { signal })
      const batch = keys.slice(start, start + size)
      const found = new Set(await act(batch))
      for (const key of batch) (found.has(key) ? done : missing).push(key)
      screen.progress(`${done.length} of ${keys.length} ${past}`)
    }
  } catch (error) {
    screen.progress(undefined)
    screen.note(`${signal.aborted ? 'interrupted: ' : ''}${done.length} of ${keys.length} ${past} so far`)
    throw error
  }
  screen.progress(undefined)
  return { done, missing }
}
