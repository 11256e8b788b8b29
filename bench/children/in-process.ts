import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { beginCost } from '../cpu.ts'
import { deliveriesOf, type Kind, type SignedDelivery } from '../deliveries.ts'
import type { Cost } from '../measure.ts'
import { type Setup, takers } from '../takers.ts'
import { tally, tallyOf } from '../tally.ts'

export interface InProcessQuestion {
  readonly kind: Kind
  readonly deliveries: number
  /** The number of deliveries at a time. */
  readonly callers: number
}

const { taker, ...options }: Setup = JSON.parse(process.argv[2] ?? '')
const take = await takers[taker](options)

/** The number of new events until now. */
let taken = 0

async function takeAll(deliveries: readonly SignedDelivery[], callers: number): Promise<void> {
  let next = 0
  const call = async () => {
    for (let delivery = deliveries[next++]; delivery !== undefined; delivery = deliveries[next++]) {
      await take(delivery)
      // Events are handled in a later turn of the event loop.
      if (next % 100 === 0) await nextTurn()
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  await tallyOf(taken)
}

/** Measures a delivery, its handling and garbage collection included. */
async function measure({ kind, deliveries: count, callers }: InProcessQuestion): Promise<Cost> {
  const deliveries = deliveriesOf(kind, taken, count)
  if (kind === 'new') taken += count
  globalThis.gc?.()
  // Other threads go on with the collection: a heap of a gigabyte keeps them busy for about a second.
  await pause(process.memoryUsage().heapUsed / 1_000_000)
  const costOf = beginCost()
  await takeAll(deliveries, callers)
  const cost = costOf(count)
  const { calls, events } = tally()
  if (calls !== taken || events !== taken) throw new Error(`handled ${events} of ${taken} events, with ${calls} calls`)
  return cost
}

answerWith<InProcessQuestion>(measure)
