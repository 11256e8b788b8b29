import { checkNumbers, checkUnknown } from '../../check-options.ts'
import { WebhookError } from '../../errors.ts'
import { sleep } from '../../internal/timers.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'

/** The number of dead letters that are read at a time. */
const pageSize = 1_000

/** The pause before a full inbox is asked again, in ms. */
const pauseMs = 500

/** Replays dead letters one by one, for the inboxes that have no faster way. */
export async function replayAll(
  deadLetters: Pick<DeadLetters, 'list' | 'replay'>,
  options?: ReplayAllOptions,
): Promise<ReplayReport> {
  const { matches, perSecond, onProgress, signal } = checkReplay(options)
  const keys = await keysOf(deadLetters, matches)
  const report = { total: keys.length, replayed: 0, kept: 0 }
  const startedAt = performance.now()
  for (const [index, key] of keys.entries()) {
    await sleep(startedAt + (index * 1_000) / perSecond - performance.now())
    if (signal?.aborted) break
    if (await replayOne(deadLetters, key, signal)) report.replayed++
    else report.kept++
    onProgress?.({ ...report })
  }
  return report
}

/** Checks the options of a replay, fills in the defaults, and says which dead letters they choose. */
export function checkReplay({ type, since, perSecond = 100, onProgress, signal, ...unknown }: ReplayAllOptions = {}) {
  checkUnknown('replayAll', unknown)
  checkNumbers('replayAll', { perSecond })
  const matches = ({ event, diedAt }: DeadLetter) =>
    (type === undefined || event?.type === type) && (since === undefined || diedAt >= since)
  return { matches, perSecond, onProgress, signal }
}

/** Lists the keys of the dead letters that match, oldest first. */
async function keysOf(
  deadLetters: Pick<DeadLetters, 'list'>,
  matches: (deadLetter: DeadLetter) => boolean,
): Promise<readonly string[]> {
  const keys = new Set<string>()
  for (let offset = 0; ; offset += pageSize) {
    const page = await deadLetters.list({ limit: pageSize, offset })
    for (const deadLetter of page) if (matches(deadLetter)) keys.add(deadLetter.key)
    if (page.length < pageSize) return [...keys].reverse()
  }
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
      await sleep(pauseMs)
    }
  }
  return false
}
