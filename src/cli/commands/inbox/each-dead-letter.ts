import { setTimeout as pause } from 'node:timers/promises'
import type { InboxFile } from '../../../inbox/sqlite.ts'
import type { Screen } from '../../shared/screen.ts'

/** The keys of the dead letters that an action was asked for. */
interface ActedOn {
  readonly done: readonly string[]
  /** Keys that no dead letter has. */
  readonly missing: readonly string[]
}

/** The number of dead letters in a commit. A server that has the inbox open waits for it. */
const batchSize = 100

/** The pause between two commits, in ms, in which that server can commit. */
const pauseMs = 10

/**
 * Replays or discards dead letters, a hundred in a commit. If it is interrupted, it prints how many are done.
 * @param act returns `false` if no dead letter has the key
 * @param past the participle of the action, for the message
 */
export async function eachDeadLetter(
  file: InboxFile,
  keys: readonly string[],
  act: (key: string) => boolean,
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
      const results = file.inOneCommit(() => batch.map(act))
      for (const [index, key] of batch.entries()) (results[index] ? done : missing).push(key)
    }
  } catch (error) {
    note(`interrupted: ${done.length} of ${keys.length} ${past} so far`)
    throw error
  }
  return { done, missing }
}

const pageSize = 100

/** Lists the keys of all dead letters, oldest first, so that replayed events are handled in their original order. */
export function everyKey({ deadLetters }: InboxFile): string[] {
  const keys = new Set<string>()
  for (let offset = 0; ; offset += pageSize) {
    const page = deadLetters.list({ limit: pageSize, offset })
    // A new dead letter shifts the others to the next page, so some appear twice.
    for (const { key } of page) keys.add(key)
    if (page.length < pageSize) return [...keys].reverse()
  }
}
