import { sleep } from '../../internal/timers.ts'
import type { Replayer } from '../operations/replay-all.ts'
import type { SqliteDeadLetters } from '../sqlite-tables/dead-letters.ts'

/**
 * Replays the dead letters of a file, some in each commit.
 * @param replayMany replays those with these keys in one commit
 */
export const fileReplayer = (deadLetters: SqliteDeadLetters, replayMany: Replayer['replay']): Replayer => ({
  // The deliveries to the process that has the inbox open wait for a commit.
  largestStep: 100,
  async keys(matches) {
    const keys: string[] = []
    for (let after = 0; ; await sleep(1)) {
      const slice = deadLetters.slice(after)
      for (const { deadLetter } of slice) if (matches(deadLetter)) keys.push(deadLetter.key)
      const last = slice.at(-1)
      if (last === undefined) return keys
      after = last.id
    }
  },
  replay: replayMany,
})
