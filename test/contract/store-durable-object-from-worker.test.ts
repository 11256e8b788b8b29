import { expect, onTestFinished, test, vi } from 'vitest'
import { durableObjectStore, StoreObject } from '../../src/inbox/durable-object/cloudflare.ts'
import { storeContract } from '../../src/testing/store-contract.ts'
import { storageInNode } from '../inbox/durable-object/storage-in-node.ts'

// The store and its objects in one process. In workerd, the objects are elsewhere (store-durable-object.test.ts).

function subject(shards?: number) {
  const storages: ReturnType<typeof storageInNode>[] = []
  const objects = new Map<string, StoreObject>()
  let isBroken = false
  let losesAnswer = false
  const made = (name: string) => {
    const storage = storageInNode()
    const object = new StoreObject({ storage })
    storages.push(storage)
    objects.set(name, object)
    return object
  }
  const store = durableObjectStore({
    namespace: {
      idFromName: (name) => ({ name }),
      get: (id) => ({
        async fetch(url, init) {
          if (isBroken) throw new Error('no object')
          const { name } = id as { name: string }
          const answer = await (objects.get(name) ?? made(name)).fetch(new Request(url, init))
          if (!losesAnswer) return answer
          losesAnswer = false
          throw new Error('the answer was lost')
        },
      }),
    },
    timeoutMs: 500,
    ...(shards !== undefined && { shards }),
  })
  const advance = (ms: number) => {
    for (const { sql } of storages) sql.exec('UPDATE store_key SET expires_at = expires_at - ?', ms)
  }
  const breakConnection = () => {
    isBroken = true
  }
  const loseNextAnswer = () => {
    losesAnswer = true
  }
  const keys = () =>
    storages
      .flatMap(({ sql }) =>
        sql
          .exec('SELECT key FROM store_key')
          .toArray()
          .map(({ key }) => key),
      )
      .toSorted()
  return { store, advance, breakConnection, loseNextAnswer, keys }
}

storeContract(() => subject(), { test, expect })

test('a step whose answer was lost is repeated, and is the same step', async () => {
  const { store, loseNextAnswer } = subject()
  loseNextAnswer()
  expect(await store.claim('key', 'a', 60_000)).toBe('claimed')
  expect(await store.claim('key', 'a', 60_000)).toBe('in-progress')
  loseNextAnswer()
  expect(await store.complete('key', 'a')).toBe(true)
})

test('an object removes the keys that have expired when it is asked for others, once a second', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { store, keys } = subject(1)
  await store.claim('one', 'a', 100)
  vi.advanceTimersByTime(500)
  await store.claim('two', 'a', 60_000)
  expect(keys()).toEqual(['"one"', '"two"'])
  vi.advanceTimersByTime(500)
  await store.claim('three', 'a', 60_000)
  expect(keys()).toEqual(['"three"', '"two"'])
})
