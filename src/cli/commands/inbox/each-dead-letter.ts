import { setImmediate as turn } from 'node:timers/promises'
import type { InboxFile } from '../../../inbox/sqlite.ts'
import type { Screen } from '../../shared/screen.ts'

/** What became of the dead letters that were asked for. */
export interface Outcome {
  readonly done: readonly string[]
  /** The keys that no dead letter has. */
  readonly missing: readonly string[]
}

/**
 * Does something to one dead letter after the other. Where it is cut off, it says how far it came.
 * @param past what has been done to them then
 */
export async function eachDeadLetter(
  keys: readonly string[],
  act: (key: string) => boolean,
  past: string,
  { note, signal }: Screen,
): Promise<Outcome> {
  const done: string[] = []
  const missing: string[] = []
  try {
    for (const key of keys) {
      // Ctrl-C is only heard when the event loop has its turn.
      await turn(undefined, { signal })
      const keysOf = act(key) ? done : missing
      keysOf.push(key)
    }
  } catch (error) {
    note(`cut off: ${done.length} of ${keys.length} ${past} so far`)
    throw error
  }
  return { done, missing }
}

const pageSize = 100

/** The keys of every dead letter, the oldest first, so that replayed events are handled in the order they came in. */
export function everyKey({ deadLetters }: InboxFile): string[] {
  const keys = new Set<string>()
  for (let offset = 0; ; offset += pageSize) {
    const page = deadLetters.list({ limit: pageSize, offset })
    // One that has died meanwhile moves the others on, so that some are seen twice.
    for (const { key } of page) keys.add(key)
    if (page.length < pageSize) return [...keys].reverse()
  }
}
