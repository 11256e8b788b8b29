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

/** Delay before a full inbox is tried again (ms). */
const overloadDelayMs = 500

/** Target steps per second. A `maxStep` too small for the rate takes more. */
const stepsPerSecond = 10

export interface Replayer {
  /** Maximum dead letters per step. */
  readonly maxStep: number
  /** Lists the keys of the matching dead letters, oldest first. */
  keys(matches: (deadLetter: DeadLetter) => boolean): Promise<readonly string[]>
  /** Returns the keys it replayed. */
  replay(keys: readonly string[], signal?: AbortSignal): MaybePromise<readonly string[]>
}

/** Replays dead letters one at a time, for inboxes without a faster way. */
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

/** Replays dead letters in steps, at most `perSecond`. */
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
      // Awaited: a rejection must reach the caller.
      await onProgress?.({ ...report })
    }
  }
  return report
}

/** Waits while the inbox is full. @throws WebhookError `closing` or `unavailable` */
export async function replayOne(
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
