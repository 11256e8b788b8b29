import { setImmediate as nextTurn } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { type SignedDelivery, signedDelivery, toDelivery } from '../deliveries.ts'
import { tally, tallyOf } from '../tally.ts'

/** Takes one delivery as an adapter has it: the bytes, and the headers of node:http. */
type Take = (delivery: SignedDelivery) => unknown

const pipelines: Record<string, () => Promise<Take>> = {
  'hand-written': async () => {
    const { run, take } = await import('../pipeline.ts')
    return ({ body, headers }) => run(take(body, headers['x-signature']))
  },
  ours: async () => {
    const { receiver } = await import('../ours.ts')
    const ours = receiver()
    return (delivery) => ours.receive(toDelivery(delivery))
  },
}

const take = await pipelines[process.argv[2] ?? '']?.()
if (!take) throw new Error(`No pipeline is named ${process.argv[2]}`)

let taken = 0

/** Measures nanoseconds per delivery, its handling and garbage collection included. */
async function measure(deliveries: readonly SignedDelivery[]): Promise<number> {
  globalThis.gc?.()
  const start = performance.now()
  for (const delivery of deliveries) {
    await take?.(delivery)
    // Events are handled in a later turn of the event loop.
    if (++taken % 100 === 0) await nextTurn()
  }
  if (tally().calls !== taken) await tallyOf(taken)
  const elapsed = performance.now() - start
  const { calls, events } = tally()
  if (calls !== taken || events !== taken) throw new Error(`handled ${events} of ${taken} events, with ${calls} calls`)
  return (elapsed / deliveries.length) * 1e6
}

answerWith<number>((count) => measure(Array.from({ length: count }, (_, index) => signedDelivery(taken + index))))
