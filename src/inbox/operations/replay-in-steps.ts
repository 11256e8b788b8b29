import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import type { DeadLetter, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { checkReplay } from './replay-all.ts'

/** The steps in a second, unless `perSecond` is so high that there are more. */
const stepsPerSecond = 10

/** Replays some of the dead letters of an inbox. */
export interface Replayer {
  /** Maximum number that it replays in one step. */
  readonly largestStep: number
  /** Lists the keys of the dead letters that match, oldest first. */
  keys(matches: (deadLetter: DeadLetter) => boolean): Promise<readonly string[]>
  /** Returns the keys of those that were replayed. */
  replay(keys: readonly string[]): MaybePromise<readonly string[]>
}

/** Replays dead letters, many in a commit. The default entry has only `replayAll`, which is smaller. */
export async function replayInSteps(replayer: Replayer, options?: ReplayAllOptions): Promise<ReplayReport> {
  const { matches, perSecond, onProgress, signal } = checkReplay(options)
  const keys = await replayer.keys(matches)
  const total = keys.length
  const report = { total, replayed: 0, kept: 0 }
  const size = Math.min(replayer.largestStep, Math.ceil(perSecond / stepsPerSecond))
  const startedAt = performance.now()
  for (let start = 0; start < total; start += size) {
    await sleep(startedAt + (start * 1_000) / perSecond - performance.now())
    if (signal?.aborted) break
    const step = keys.slice(start, start + size)
    const replayed = new Set(await replayer.replay(step))
    for (const key of step) {
      report[replayed.has(key) ? 'replayed' : 'kept']++
      onProgress?.({ ...report })
    }
  }
  return report
}
