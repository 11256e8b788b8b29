import { checkNumbers, checkUnknown } from '../../internal/check-options.ts'
import type { DeadLetter, ReplayAllOptions, ReplayReport } from '../reading.ts'

/** The most dead letters of a commit, and the number of commits in a second while there are fewer. */
const largestBatch = 500
const perTurn = 10

interface Replayable {
  keys(matches: (deadLetter: DeadLetter) => boolean): Promise<readonly string[]>
  /** Returns the keys of those that were replayed. */
  replayEach(keys: readonly string[]): Promise<readonly string[]>
}

/** Replays dead letters, many in a commit. */
export async function replayAll(deadLetters: Replayable, options: ReplayAllOptions = {}): Promise<ReplayReport> {
  const { type, since, perSecond = 100, onProgress, signal, ...unknown } = options
  checkUnknown('replayAll', unknown)
  checkNumbers('replayAll', { perSecond })
  const keys = await deadLetters.keys(
    ({ event, diedAt }) => (type === undefined || event?.type === type) && (since === undefined || diedAt >= since),
  )
  const report = { total: keys.length, replayed: 0, kept: 0 }
  const size = Math.min(largestBatch, Math.ceil(perSecond / perTurn))
  const startedAt = performance.now()
  for (let start = 0; start < keys.length; start += size) {
    await pauseUntil(startedAt + (start * 1_000) / perSecond)
    if (signal?.aborted) break
    const batch = keys.slice(start, start + size)
    const replayed = new Set(await deadLetters.replayEach(batch))
    for (const key of batch) {
      if (replayed.has(key)) report.replayed++
      else report.kept++
      onProgress?.({ ...report })
    }
  }
  return report
}

async function pauseUntil(time: number): Promise<void> {
  const ms = time - performance.now()
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
}
