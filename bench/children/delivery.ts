import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { nodeHandler } from '../../adapters/node.ts'
import { createReceiver, hmacSignature } from '../../src/index.ts'
import { answerWith } from '../child.ts'
import { listen } from '../contenders/listen.ts'
import { secret, signedDelivery, toDelivery } from '../deliveries.ts'
import { handle, type Tally, tally, tallyOf } from '../tally.ts'
import { takeCollections } from './collections.ts'

export type DeliveryQuestion =
  | { readonly ask: 'in-process'; readonly deliveries: number }
  | { readonly ask: 'port' }
  | { readonly ask: 'work'; readonly expected: number }

/** The mean cost of a delivery in process. */
export interface InProcessCost {
  readonly nanoseconds: number
  readonly cpuNanoseconds: number
  /** Garbage collection, which the other two include. */
  readonly gcNanoseconds: number
}

/** The work of the server since the question for its port. */
export interface ServerWork extends Tally {
  /** Microseconds of CPU. */
  readonly cpu: number
}

const receiver = createReceiver({ verify: hmacSignature({ secret, header: 'x-signature' }) })
receiver.on('encoding.finished', (event) => handle(event.mediaId))

const cpuMicroseconds = (before?: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

let taken = 0

async function inProcess(count: number): Promise<InProcessCost> {
  const deliveries = Array.from({ length: count }, (_, index) => signedDelivery(taken + index))
  globalThis.gc?.()
  takeCollections()
  const cpuBefore = process.cpuUsage()
  const start = performance.now()
  for (const delivery of deliveries) {
    await receiver.receive(toDelivery(delivery))
    if (++taken % 100 === 0) await nextTurn()
  }
  if (tally().calls !== taken) await tallyOf(taken)
  const elapsed = performance.now() - start
  const cpu = cpuMicroseconds(cpuBefore)
  if (tally().events !== taken) throw new Error(`handled ${tally().events} of ${taken} events`)
  return {
    nanoseconds: (elapsed / count) * 1e6,
    cpuNanoseconds: (cpu / count) * 1e3,
    gcNanoseconds: (takeCollections() / count) * 1e6,
  }
}

let cpuBefore = process.cpuUsage()

answerWith<DeliveryQuestion>(async (question) => {
  if (question.ask === 'in-process') {
    // Warms up the compiler.
    if (taken === 0) await inProcess(question.deliveries)
    return inProcess(question.deliveries)
  }
  if (question.ask === 'work') {
    return { ...(await tallyOf(question.expected)), cpu: cpuMicroseconds(cpuBefore) } satisfies ServerWork
  }
  const port = await listen(createServer(nodeHandler(receiver)))
  cpuBefore = process.cpuUsage()
  return port
})
