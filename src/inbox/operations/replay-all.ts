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
import type { DeadLetter, DeadLetters, KeysOptions, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { type ActOnBatch, actOnEach, oneByOne } from './act-on-each.ts'

const rules: Rules<ReplayAllOptions> = {
  type: text,
  since: aDate,
  perSecond: wholeNumber(),
  onProgress: aFunction,
  signal: anAbortSignal,
}

/** Lists the keys of the dead letters that match the options, oldest first. */
type Keys = () => MaybePromise<readonly string[]>

/** Replays dead letters one by one, for inboxes without a faster way. */
export function replayAll(deadLetters: Pick<DeadLetters, 'replay'>, options: ReplayAllOptions | undefined, keys: Keys) {
  const replay = oneByOne((key) => deadLetters.replay(key))
  return replayInBatches(replay, 1, keys, options)
}

export async function replayInBatches(
  replay: ActOnBatch,
  batchSize: number,
  keys: Keys,
  options: ReplayAllOptions = {},
): Promise<ReplayReport> {
  checkOptions('replayAll', options, rules)
  const { perSecond = 100, onProgress, signal } = options
  const found = await keys()
  const report = { total: found.length, replayed: 0, kept: 0 }
  for await (const { outcome } of actOnEach(found, replay, { perSecond, batchSize, signal })) {
    report[outcome === 'done' ? 'replayed' : 'kept']++
    // Awaited: a rejection must reach the caller.
    await onProgress?.({ ...report })
  }
  return report
}

/** Returns a filter of dead letters. */
export const matching =
  ({ type, since }: KeysOptions = {}) =>
  ({ event, diedAt }: Pick<DeadLetter, 'event' | 'diedAt'>): boolean =>
    (type === undefined || event?.type === type) && (since === undefined || diedAt >= since)
