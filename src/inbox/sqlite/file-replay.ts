import { checkNumbers, checkUnknown } from '../../internal/check-options.ts'
import type { DeadLetter, ReplayAllOptions, ReplayReport } from '../reading.ts'

/** The most dead letters of a commit: the deliveries to the process that has the inbox open wait meanwhile. */
const perCommit = 100

/** The number of commits in a second, unless `perSecond` is so high that there are more. */
const commitsPerSecond = 10

/** The dead letters of a file. */
export interface FileDeadLetters {
  /** Lists some, oldest first. `after` is the `id` of the last one of the list before. */
  readonly slice: (after: number) => readonly { readonly id: number; readonly deadLetter: DeadLetter }[]
  readonly replay: (key: string) => boolean
  readonly inOneCommit: <T>(run: () => T) => T
}

/** Replays the dead letters of a file, some in each commit. */
export async function replayInFile(file: FileDeadLetters, options: ReplayAllOptions = {}): Promise<ReplayReport> {
  const { type, since, perSecond = 100, onProgress, signal, ...unknown } = options
  checkUnknown('replayAll', unknown)
  checkNumbers('replayAll', { perSecond })
  const keys = await keysOf(
    file,
    ({ event, diedAt }) => (type === undefined || event?.type === type) && (since === undefined || diedAt >= since),
  )
  const report = { total: keys.length, replayed: 0, kept: 0 }
  const size = Math.min(perCommit, Math.ceil(perSecond / commitsPerSecond))
  const startedAt = performance.now()
  for (let done = 0; done < keys.length; done += size) {
    await sleep(startedAt + (done * 1_000) / perSecond - performance.now())
    if (signal?.aborted) break
    const some = keys.slice(done, done + size)
    for (const wasThere of file.inOneCommit(() => some.map((key) => file.replay(key)))) {
      if (wasThere) report.replayed++
      else report.kept++
      onProgress?.({ ...report })
    }
  }
  return report
}

/** Lists the keys of the dead letters that match, oldest first. */
async function keysOf(file: FileDeadLetters, matches: (deadLetter: DeadLetter) => boolean): Promise<readonly string[]> {
  const keys: string[] = []
  for (let after = 0; ; await sleep(1)) {
    const slice = file.slice(after)
    for (const { deadLetter } of slice) if (matches(deadLetter)) keys.push(deadLetter.key)
    const last = slice.at(-1)
    if (last === undefined) return keys
    after = last.id
  }
}

const sleep = async (ms: number): Promise<void> => {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
}
