/**
 * Replays, discards, retries or stops many events: what `replayAll`, the dashboard and the command have in common.
 *
 * - Takes the keys in their order, alone or in batches, and yields what became of each.
 * - Keeps to `perSecond` on average: after a slow batch it catches up.
 * - Yields to the event loop, also if the inbox answers without I/O.
 * - Waits while the inbox is full, then tries the same event again.
 * - Leaves an event that the inbox refuses as it is, and continues. A refused batch is tried again, one by one.
 * - Ends when the signal aborts, also during a delay. Events that it has not yielded are unchanged.
 * - Throws any other error, after it has yielded what was done before.
 */
import { WebhookError } from '../../errors.ts'
import { LoopYields } from '../../internal/loop-yields.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'

/** Delay before a full inbox is tried again (ms). */
const overloadDelayMs = 500

/** Target batches per second. A `batchSize` too small for the rate takes more. */
const batchesPerSecond = 10

/** `gone`: there was nothing to act on, such as a dead letter that somebody else has replayed. */
export type Acted =
  | { readonly key: string; readonly outcome: 'done' | 'gone' }
  | { readonly key: string; readonly outcome: 'refused'; readonly reason: string }

/** Adds to `done` each key that it acts on, also if it fails halfway. */
export type ActOnBatch = (keys: readonly string[], done: Set<string>) => MaybePromise<void>

export interface Pace {
  /** Without it, as fast as the inbox takes them. */
  readonly perSecond?: number | undefined
  /** @defaultValue 1 */
  readonly batchSize?: number
  readonly signal?: AbortSignal | undefined
}

/** @param act returns `false` if there was nothing to act on */
export const oneByOne =
  (act: (key: string) => MaybePromise<boolean>): ActOnBatch =>
  async (keys, done) => {
    for (const key of keys) if (await act(key)) done.add(key)
  }

export async function* actOnEach(
  keys: readonly string[],
  act: ActOnBatch,
  { perSecond = Number.POSITIVE_INFINITY, batchSize = 1, signal }: Pace,
): AsyncGenerator<Acted, void> {
  const size = Math.min(batchSize, Math.ceil(perSecond / batchesPerSecond))
  const yields = new LoopYields()
  const startedAt = performance.now()
  for (let start = 0; start < keys.length && !signal?.aborted; start += size) {
    const earlyMs = startedAt + (start * 1_000) / perSecond - performance.now()
    await (earlyMs > 0 ? sleep(earlyMs, signal) : yields.due())
    yield* actOnBatch(keys.slice(start, start + size), act, signal)
  }
}

async function* actOnBatch(batch: readonly string[], act: ActOnBatch, signal?: AbortSignal): AsyncGenerator<Acted> {
  let left = batch
  for (let size = batch.length; left.length > 0 && !signal?.aborted; ) {
    const tried = left.slice(0, size)
    const done = new Set<string>()
    let refusal: WebhookError | undefined
    try {
      await act(tried, done)
    } catch (error) {
      if (!isRefusal(error)) throw error
      refusal = error
    } finally {
      for (const key of tried) if (done.has(key)) yield { key, outcome: 'done' }
    }
    const others = tried.filter((key) => !done.has(key))
    left = left.slice(size)
    if (refusal === undefined) for (const key of others) yield { key, outcome: 'gone' }
    else if (size === 1 && refusal.code !== 'overloaded')
      for (const key of others) yield { key, outcome: 'refused', reason: refusal.message }
    else {
      if (size === 1) await sleep(overloadDelayMs, signal)
      left = [...others, ...left]
      size = 1
    }
  }
}

const isRefusal = (error: unknown): error is WebhookError =>
  error instanceof WebhookError && ['overloaded', 'in_progress', 'malformed'].includes(error.code)
