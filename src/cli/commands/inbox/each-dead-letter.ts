import { setTimeout as pause } from 'node:timers/promises'
import type { MaybePromise } from '../../../internal/maybe-promise.ts'
import type { Screen } from '../../shared/screen.ts'

/** An action on dead letters. */
interface DeadLetterAction {
  readonly keys: readonly string[]
  /** Replays or discards dead letters, and returns the keys that one had. */
  readonly act: (keys: readonly string[]) => MaybePromise<readonly string[]>
  /** The participle of the action, for the messages. */
  readonly past: string
  /** Maximum number of dead letters in a second. */
  readonly perSecond: number | undefined
}

/** The keys of the dead letters that an action was asked for. */
interface DeadLetterResult {
  readonly done: readonly string[]
  /** Keys that no dead letter has. */
  readonly missing: readonly string[]
}

/** The number of dead letters in a commit. A server that has the file of the inbox open waits for the commit. */
const batchSize = 100

/** The pause between two commits, in ms, in which that server can commit. */
const delayMs = 10

/**
 * Replays or discards dead letters, up to a hundred in a commit, and shows how many are done. If it is interrupted, it
 * prints that.
 */
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
      // Node handles Ctrl-C only between turns of the event loop.
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
