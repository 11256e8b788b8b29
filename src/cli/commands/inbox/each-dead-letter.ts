import { setTimeout as pause } from 'node:timers/promises'
import type { Screen } from '../../shared/screen.ts'

/** The keys of the dead letters that an action was asked for. */
interface ActedOn {
  readonly done: readonly string[]
  /** Keys that no dead letter has. */
  readonly missing: readonly string[]
}

/** The number of dead letters in a commit. A server that has the file of the inbox open waits for it. */
const batchSize = 100

/** The pause between two commits, in ms, in which that server can commit. */
const pauseMs = 10

/**
 * Replays or discards dead letters, a hundred in a commit. If it is interrupted, it prints how many are done.
 * @param act returns the keys that a dead letter has
 * @param past the participle of the action, for the message
 */
export async function eachDeadLetter(
  keys: readonly string[],
  act: (keys: readonly string[]) => Promise<readonly string[]>,
  past: string,
  { note, signal }: Screen,
): Promise<ActedOn> {
  const done: string[] = []
  const missing: string[] = []
  try {
    for (let start = 0; start < keys.length; start += batchSize) {
      // Node handles Ctrl-C only between turns of the event loop.
      await pause(start === 0 ? 0 : pauseMs, undefined, { signal })
      const batch = keys.slice(start, start + batchSize)
      const found = new Set(await act(batch))
      for (const key of batch) (found.has(key) ? done : missing).push(key)
    }
  } catch (error) {
    note(`${signal.aborted ? 'interrupted: ' : ''}${done.length} of ${keys.length} ${past} so far`)
    throw error
  }
  return { done, missing }
}
