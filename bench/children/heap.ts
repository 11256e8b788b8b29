import { setImmediate as nextTurn } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { signedDelivery, toDelivery } from '../deliveries.ts'
import { receiver } from '../ours.ts'
import { tallyOf } from '../tally.ts'

const ours = receiver()
let taken = 0

/** Measures the heap in MB after `count` more events. */
async function heapAfter(count: number): Promise<number> {
  for (const end = taken + count; taken < end; ) {
    await ours.receive(toDelivery(signedDelivery(taken++)))
    if (taken % 100 === 0) await nextTurn()
  }
  const { calls, events } = await tallyOf(taken)
  if (calls !== taken || events !== taken) throw new Error(`handled ${events} of ${taken} events, with ${calls} calls`)
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}

answerWith<number>(heapAfter)
