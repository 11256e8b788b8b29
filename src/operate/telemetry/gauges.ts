import { type Attributes, type BatchObservableCallback, diag, type Meter } from '@opentelemetry/api'
import type { Inbox } from '../../inbox/inbox.ts'
import type { InboxStats } from '../../inbox/reading.ts'
import { within } from '../../internal/timers.ts'
import type { Instruments } from './instruments.ts'

/** How long an export waits for the inbox (ms). */
const statsTimeoutMs = 5_000

type Gauges = Pick<Instruments, 'states' | 'deadLetters' | 'oldestWaiting' | 'expected'>

/** Reads the inbox's numbers at each export. Returns a function that stops it. */
export function observeInbox(meter: Meter, gauges: Gauges, inbox: Inbox, attributes: Attributes): () => void {
  const { states, deadLetters, oldestWaiting, expected } = gauges
  const observe: BatchObservableCallback = async (result) => {
    const stats = await readStats(inbox)
    if (stats === undefined) return
    for (const state of ['waiting', 'running', 'retrying'] as const)
      result.observe(states, stats[state], { ...attributes, 'media_webhooks.state': state })
    // A queue's inbox knows neither its waiting events nor its dead letters.
    if (inbox.handleMessage !== undefined) return
    result.observe(deadLetters, stats.deadLetters, attributes)
    const age = ageOf(stats)
    if (age !== undefined) result.observe(oldestWaiting, age, attributes)
    if (inbox.expected !== undefined) result.observe(expected, stats.expected ?? 0, attributes)
  }
  const observed = [states, deadLetters, oldestWaiting, expected]
  meter.addBatchObservableCallback(observe, observed)
  return () => meter.removeBatchObservableCallback(observe, observed)
}

/** Returns `undefined` if the inbox does not answer: the other metrics are still exported. */
async function readStats(inbox: Inbox): Promise<InboxStats | undefined> {
  try {
    return await within(statsTimeoutMs, Promise.resolve(inbox.stats()), () => undefined)
  } catch (error) {
    diag.warn('media-webhooks: the inbox could not be asked for its numbers', error)
    return undefined
  }
}

/** Seconds. */
function ageOf({ waiting, oldestWaitingAt }: InboxStats): number | undefined {
  if (oldestWaitingAt !== undefined) return Math.max(0, (Date.now() - oldestWaitingAt.getTime()) / 1_000)
  return waiting === 0 ? 0 : undefined
}
