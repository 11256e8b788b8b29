import { setImmediate as nextTurn } from 'node:timers/promises'
import type { InboxDefinition } from '../../src/index.ts'
import { answerWith } from '../child.ts'
import { signedDelivery, toDelivery } from '../deliveries.ts'
import { lruStore, memoryInbox, receiver, sqliteInbox, temporaryFile } from '../ours.ts'
import { type Take, takers } from '../takers.ts'
import { tallyOf } from '../tally.ts'

/** Handlers have to take long for all events except the first. */
export type MemoryQuestion = 'remembered key' | 'waiting, memory' | 'waiting, SQLite' | 'running' | 'running, by hand'

const keys = 1_000_000

function bytes(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Measures the memory of a store for each key, beyond the key itself. */
function perKey(): number {
  const given = Array.from({ length: keys }, () => crypto.randomUUID())
  const before = bytes()
  const store = lruStore({ max: keys })
  for (const key of given) {
    store.claim(key, 'owner', 5_000)
    store.complete(key, 'owner')
  }
  const retained = (bytes() - before) / keys
  if (store.claim(given[0] as string, 'owner', 5_000) !== 'done') throw new Error('the first key is forgotten')
  return retained
}

/** Measures the memory of each event beyond the first thousand: their code and tables do not count. */
async function perEvent(take: Take, settled = async () => {}): Promise<number> {
  const takeAll = async (from: number, to: number) => {
    for (let index = from; index < to; index++) {
      await take(signedDelivery(index))
      if (index % 100 === 0) await nextTurn()
    }
  }
  await takeAll(0, 1_000)
  const before = bytes()
  await Promise.all(Array.from({ length: 33 }, (_, caller) => takeAll((caller + 1) * 3_000, (caller + 2) * 3_000)))
  await settled()
  return (bytes() - before) / 99_000
}

const limits = { concurrency: 1, maxWaiting: 100_000 }

async function perWaiting(inbox: InboxDefinition): Promise<number> {
  const ours = receiver({ inbox })
  const retained = await perEvent((delivery) => ours.receive(toDelivery(delivery)))
  const { waiting } = await ours.inbox.stats()
  if (waiting < 99_000) throw new Error(`${waiting} events wait`)
  return retained
}

const perRunning = (take: Take) =>
  perEvent(take, async () => {
    const { calls } = await tallyOf(100_000)
    if (calls !== 100_000) throw new Error(`${calls} events are being handled`)
  })

answerWith<MemoryQuestion>(async (question) => {
  if (question === 'remembered key') return perKey()
  if (question === 'waiting, memory') return perWaiting(memoryInbox(limits))
  if (question === 'waiting, SQLite') return perWaiting(sqliteInbox({ ...limits, path: temporaryFile() }))
  return perRunning(await (question === 'running' ? takers.ours() : takers.byHand()))
})
