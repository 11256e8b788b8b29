import { WebhookError } from '../../errors.ts'
import {
  aDate,
  aFunction,
  anAbortSignal,
  checkOptions,
  type Rules,
  text,
  wholeNumber,
} from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'

/** The pause before a full inbox is asked again, in ms. */
const overloadDelayMs = 500

/** The number of steps in a second. A high `perSecond` needs more. */
const stepsPerSecond = 10

/** Replays some of the dead letters of an inbox. */
export interface Replayer {
  /** Maximum number of dead letters in one step. */
  readonly maxStep: number
  /** Lists the keys of the matching dead letters, oldest first. */
  keys(matches: (deadLetter: DeadLetter) => boolean): Promise<readonly string[]>
  /** Returns the keys of the replayed ones. */
  replay(keys: readonly string[], signal?: AbortSignal): MaybePromise<readonly string[]>
}

/** Replays dead letters one by one, for inboxes without a faster way. */
export const replayAll = (
  deadLetters: Pick<DeadLetters, 'replay'>,
  options: ReplayAllOptions | undefined,
  keys: Replayer['keys'],
): Promise<ReplayReport> =>
  replayInSteps(
    {
      maxStep: 1,
      keys,
      replay: async ([key = ''], signal) => ((await replayOne(deadLetters, key, signal)) ? [key] : []),
    },
    options,
  )

const rules: Rules<ReplayAllOptions> = {
  type: text,
  since: aDate,
  perSecond: wholeNumber(),
  onProgress: aFunction,
  signal: anAbortSignal,
}

/** Replays dead letters, many in a step. */
export async function replayInSteps(replayer: Replayer, options: ReplayAllOptions = {}): Promise<ReplayReport> {
  checkOptions('replayAll', options, rules)
  const { type, since, perSecond = 100, onProgress, signal } = options
  const keys = await replayer.keys(
    ({ event, diedAt }) => (type === undefined || event?.type === type) && (since === undefined || diedAt >= since),
  )
  const total = keys.length
  const report = { total, replayed: 0, kept: 0 }
  const size = Math.min(replayer.maxStep, Math.ceil(perSecond / stepsPerSecond))
  const startedAt = performance.now()
  for (let start = 0; start < total; start += size) {
    await sleep(startedAt + (start * 1_000) / perSecond - performance.now())
    if (signal?.aborted) break
    const step = keys.slice(start, start + size)
    const replayed = new Set(await replayer.replay(step, signal))
    for (const key of step) {
      report[replayed.has(key) ? 'replayed' : 'kept']++
      // Awaited, so that a rejection reaches the caller.
      await onProgress?.({ ...report })
    }
  }
  return report
}

/** @throws WebhookError `closing` or `unavailable` */
async function replayOne(
  deadLetters: Pick<DeadLetters, 'replay'>,
  key: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  while (!signal?.aborted) {
    try {
      return await deadLetters.replay(key)
    } catch (error) {
      const code = error instanceof WebhookError ? error.code : undefined
      if (code === 'malformed' || code === 'in_progress') return false
      if (code !== 'overloaded') throw error
      await sleep(overloadDelayMs)
    }
  }
  return false
}
