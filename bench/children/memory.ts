import { setImmediate as nextTurn } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { signedDelivery, toDelivery } from '../deliveries.ts'
import { lruStore, memoryInbox, receiver, sqliteInbox, temporaryFile } from '../ours.ts'

export type MemoryQuestion = 'remembered key' | 'waiting, memory' | 'waiting, SQLite'

const keys = 1_000_000
const events = 100_000

function bytes(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Measures what a store needs for a key that it remembers, beyond the key itself. */
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

/** Measures what an inbox needs for an event that waits. */
async function perWaiting(durable: boolean): Promise<number> {
  const limits = { concurrency: 1, maxWaiting: events }
  const inbox = durable ? sqliteInbox({ ...limits, path: temporaryFile() }) : memoryInbox(limits)
  const ours = receiver({ inbox })
  ours.on('encoding.started', () => new Promise(() => {}))
  const take = async (from: number, to: number) => {
    for (let index = from; index < to; index++) {
      await ours.receive(toDelivery(signedDelivery(index, 'x-signature', 'encoding.started')))
      if (index % 100 === 0) await nextTurn()
    }
  }
  // The code and the tables of the first thousand do not count.
  await take(0, 1_000)
  const before = bytes()
  await Promise.all(Array.from({ length: 33 }, (_, caller) => take((caller + 1) * 3_000, (caller + 2) * 3_000)))
  const { waiting } = await ours.inbox.stats()
  if (waiting < 99_000) throw new Error(`${waiting} events wait`)
  return (bytes() - before) / 99_000
}

answerWith<MemoryQuestion>(async (question) =>
  question === 'remembered key' ? perKey() : perWaiting(question === 'waiting, SQLite'),
)
