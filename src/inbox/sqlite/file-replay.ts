import { sleep } from '../../internal/timers.ts'
import type { Replayer } from '../operations/replay-all.ts'
import type { DeadLetter } from '../reading.ts'

/** The dead letters of a file. */
export interface FileDeadLetters {
  /** Lists some, oldest first. `after` is the `id` of the last one of the list before. */
  readonly slice: (after: number) => readonly { readonly id: number; readonly deadLetter: DeadLetter }[]
  readonly replay: (key: string) => boolean
  readonly inOneCommit: <T>(run: () => T) => T
}

/** Replays the dead letters of a file, some in each commit. */
export const fileReplayer = (file: FileDeadLetters): Replayer => ({
  // The deliveries to the process that has the inbox open wait for a commit.
  largestStep: 100,
  async keys(matches) {
    const keys: string[] = []
    for (let after = 0; ; await sleep(1)) {
      const slice = file.slice(after)
      for (const { deadLetter } of slice) if (matches(deadLetter)) keys.push(deadLetter.key)
      const last = slice.at(-1)
      if (last === undefined) return keys
      after = last.id
    }
  },
  replay: (keys) => file.inOneCommit(() => keys.filter((key) => file.replay(key))),
})
