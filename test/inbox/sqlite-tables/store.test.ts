import { expect, test } from 'vitest'
import { commitsOf, openStorage } from '../../../src/inbox/durable-object/storage.ts'
import { objectTransactions } from '../../../src/inbox/durable-object/transactions.ts'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import type { ClaimedEvent } from '../../../src/inbox/sql/event.ts'
import { type Commits, limitsOf } from '../../../src/inbox/sqlite-tables/storage.ts'
import { SqliteStore } from '../../../src/inbox/sqlite-tables/store.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from '../durable-object/storage-in-node.ts'

/** Opens a store, some of whose commits fail. */
async function opened({ maxWaiting = 100 } = {}) {
  const storage = storageInNode()
  const tables = openStorage(storage)
  const commits = commitsOf(storage, tables.events)
  let fail: Commits['accept'] | undefined
  class FailingStore extends SqliteStore {
    override startOver = () => super.startOver()
  }
  const store = new FailingStore({
    storage: tables,
    commits: { ...commits, accept: (written) => (fail ?? commits.accept)(written) },
    owner: tables.owner,
    transact: objectTransactions(storage.sql, commits, tables.events),
    limits: limitsOf({ maxWaiting }),
    host: { logger: silent } as unknown as InboxHost,
    readAhead: 100,
    maxBytes: 1_000_000,
    countsAtOnce: true,
  })
  const handedOver: ClaimedEvent[] = []
  await store.begin({
    heard() {},
    stored() {},
    handOver: (event) => void handedOver.push(event),
    cutOff() {},
    lost() {},
    longRunning: () => undefined,
    isFull: (unfinished, maxWaiting) => unfinished >= maxWaiting,
    load: () => ({ running: 0, bytes: 0, isPaused: false }),
  })
  const claim = async () => {
    const { events } = await store.claim(() => ({
      limit: 100,
      withSuspect: true,
      held: [],
      heldBytes: 0,
      skippedMedia: [],
    }))
    return [...handedOver.splice(0), ...events].map(({ accepted }) => accepted.event.key)
  }
  return {
    store,
    tables,
    claim,
    accept: async (key: string) => store.accept({ accepted: eventOf(key), owed: [], changes: undefined }),
    /** Makes the next commits fail, with or without the event in the tables. */
    failing(isStored: boolean | undefined) {
      fail = async (written) => {
        if (isStored) await commits.accept(written)
        throw new Error('disk full')
      }
      if (isStored === undefined) fail = undefined
    },
  }
}

test('an event whose commit seemed to fail is claimed, before those that come after it', async () => {
  const { store, claim, accept, failing } = await opened()
  expect(await claim()).toEqual([])
  failing(true)
  await expect(accept('lost')).rejects.toThrow('disk full')
  failing(undefined)
  store.startOver()
  await accept('later')
  expect(await claim()).toEqual(['lost', 'later'])
})

test('an event whose commit failed takes no room', async () => {
  const { accept, failing } = await opened({ maxWaiting: 1 })
  failing(false)
  await expect(accept('failed')).rejects.toThrow('disk full')
  failing(undefined)
  expect(await accept('stored')).toBe(true)
  await expect(accept('too many')).rejects.toMatchObject({ code: 'overloaded' })
})

test('an unreadable delivery that is replaced by its event is due, whatever was accepted since', async () => {
  const { store, tables, claim, accept } = await opened()
  expect(await claim()).toEqual([])
  tables.database
    .prepare("INSERT INTO inbox_dead_letter (hash, dead_letter) VALUES (?, '{}')")
    .run(tables.events.hashKey('unreadable'))
  await store.replace('unreadable', { ...eventOf('replaced'), owed: [] })
  await accept('later')
  expect((await claim()).toSorted()).toEqual(['later', 'replaced'])
})

test('a process that has recovered leaves no row when it ends', async () => {
  const storage = storageInNode()
  const { events } = openStorage(storage)
  events.accept(events.write(eventOf('left')))
  const { owner, database } = openStorage(storage)
  const rows = () => database.prepare('SELECT running FROM inbox_owner').all()
  expect([owner.isRecovering, rows().length]).toEqual([true, 1])
  owner.recovered()
  owner.release()
  expect([owner.isRecovering, rows().length]).toEqual([false, 0])
})
