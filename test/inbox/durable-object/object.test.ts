import { expect, test, vi } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import {
  durableObjectInbox,
  durableObjectStore,
  type InboxObject,
  type InboxObjectOptions,
  inboxObject,
} from '../../../src/inbox/durable-object/cloudflare.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import { createReceiver, type Handler, memoryInbox, type ReceiverOptions, unverified } from '../../../src/index.ts'
import type { ObjectSql } from '../../../src/internal/storage/durable-objects.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { storageInNode } from './storage-in-node.ts'

type Setup = { receiver?: Partial<ReceiverOptions>; limits?: InboxObjectOptions }

/** Makes an object in Node, and a function that asks it to carry out a step. */
function objectWith(handler: Handler, { receiver = {}, limits = {} }: Setup = {}) {
  const MediaInbox = inboxObject(
    (_env, inbox) => createReceiver({ verify: unverified(), logger: silent, inbox, ...receiver }).onAny(handler),
    limits,
  )
  const object = new MediaInbox({ storage: storageInNode() }, {})
  return (step: string, input?: unknown) => post(object, step, input)
}

async function post(object: InboxObject, step: string, input?: unknown) {
  const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
  return (await object.fetch(request)).json()
}

const never = () => new Promise(() => {})

test('an object that is full says so, and so does an object of another version', async () => {
  const ask = objectWith(never, { limits: { concurrency: 1, maxWaiting: 1 } })
  expect(await ask('accept', eventOf('one'))).toEqual({ result: 'accepted' })
  await expect.poll(() => ask('stats')).toMatchObject({ result: { running: 1 } })
  expect(await ask('accept', eventOf('two'))).toEqual({ result: 'accepted' })
  expect(await ask('accept', eventOf('three'))).toEqual({ result: 'overloaded' })
  expect(await ask('forget')).toMatchObject({
    error: { code: 'unavailable', message: expect.stringMatching('forget') },
  })
})

test('an object whose tables a newer version made says so, and leaves them as they are', async () => {
  const storage = storageInNode()
  const make = () => {
    const MediaInbox = inboxObject((_env, inbox) => createReceiver({ verify: unverified(), logger: silent, inbox }))
    return new MediaInbox({ storage }, {})
  }
  make()
  storage.sql.exec('UPDATE inbox_schema SET version = 2')
  expect(await post(make(), 'stats')).toMatchObject({
    error: { code: 'unavailable', message: expect.stringMatching('a newer version of media-webhooks') },
  })
  expect(storage.sql.exec('SELECT version FROM inbox_schema').toArray()).toEqual([{ version: 2 }])
})

test('an object whose last event waits for its retry has its alarm at that time', async () => {
  let at = 0
  const storage = {
    ...storageInNode(),
    async setAlarm(time: number) {
      at = time
    },
  }
  const minute = 60_000
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const retry = { baseMs: 20 * minute, maxMs: 20 * minute }
  const fails = async () => {
    throw new Error('as asked')
  }
  const open = () => {
    const MediaInbox = inboxObject((_env, inbox) =>
      createReceiver({ verify: unverified(), logger: silent, inbox, retry }).onAny(fails),
    )
    return new MediaInbox({ storage }, {})
  }
  const object = open()
  await post(object, 'accept', eventOf('one'))
  await expect.poll(() => post(object, 'stats')).toMatchObject({ result: { retrying: 1 } })
  await object.alarm()
  expect(at - Date.now()).toBeGreaterThan(9 * minute)
  expect(at - Date.now()).toBeLessThanOrEqual(10 * minute)
  // Another instance finds it in the storage.
  at = 0
  open()
  expect(at - Date.now()).toBeGreaterThan(9 * minute)
  // One whose clock is not a month ahead, as the first one's was, waits no longer.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 30 * 24 * 60 * minute })
  open()
  await expect.poll(() => at - Date.now()).toBeLessThanOrEqual(10 * minute)
  // An event that is accepted in the meantime brings it forward.
  await post(open(), 'accept', eventOf('two'))
  expect(at - Date.now()).toBeLessThanOrEqual(5_000)
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('an object stores an event and sets its alarm in one turn', async () => {
  let turn = 0
  const turns: Record<string, number> = {}
  const storage = storageInNode()
  const { exec } = storage.sql
  const note = (what: string) => {
    turns[what] ??= turn
  }
  storage.sql.exec = (query, ...bindings) => {
    if (query.startsWith('INSERT INTO inbox_event')) note('stored')
    return exec(query, ...bindings)
  }
  const setAlarm = async () => note('set')
  const limits = { concurrency: 1, maxWaiting: 10_000, maxDeadLetters: 1, ttlMs: 60_000 }
  const open = (host: InboxHost) => new ObjectInbox(host, { ...storage, setAlarm }, limits)
  const { inbox } = openInbox(defineInbox({ name: 'object', open }))
  const accepted = inbox.accept(eventOf('one'))
  const counting = setInterval(() => turn++, 0)
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    turn++
  }
  clearInterval(counting)
  expect(await accepted).toBe('accepted')
  expect(turns['set']).toBe(turns['stored'])
  expect(turns['set']).toBeDefined()
  await inbox.close({ timeoutMs: 0 })
})

test('an attempt in which the storage of an object is full does not count', async () => {
  const attempts: number[] = []
  const MediaInbox = inboxObject((_env, inbox) =>
    createReceiver({ verify: unverified(), logger: silent, inbox, retry: { attempts: 1, baseMs: 1 } }).onAny(
      async (_, { attempt, transaction }) => {
        attempts.push(attempt)
        await transaction(() => {
          // This is the message of workerd.
          if (attempts.length < 3) throw new Error('database or disk is full: SQLITE_FULL')
        })
      },
    ),
  )
  const object = new MediaInbox({ storage: storageInNode() }, {})
  await post(object, 'accept', eventOf('one'))
  await expect.poll(() => attempts.length).toBe(3)
  await expect.poll(() => post(object, 'stats')).toMatchObject({ result: { running: 0, retrying: 0, deadLetters: 0 } })
  expect(attempts).toEqual([1, 1, 1])
})

test('a receiver with another inbox than the given one is an error that every step answers', async () => {
  const write = vi.spyOn(console, 'error').mockImplementation(() => {})
  const ask = objectWith(never, { receiver: { inbox: memoryInbox() } })
  const answer = await ask('accept', eventOf('one'))
  expect(answer).toMatchObject({
    error: { code: 'unavailable', message: expect.stringMatching('pass its inbox to createReceiver') },
  })
  expect(write).toHaveBeenCalledOnce()
  write.mockRestore()
})

test('wrong options are immediate errors', () => {
  const namespace = {
    idFromName: () => ({}),
    get: () => ({ fetch: () => Promise.reject(new Error('it is not asked')) }),
  }
  const make = () => createReceiver({ verify: unverified() })
  const mistakes = [
    () => inboxObject(untyped(undefined)),
    () => inboxObject(make, untyped({ maxWait: 1 })),
    () => inboxObject(make, { concurrency: 0 }),
    () => durableObjectInbox(untyped({ namespace, shard: 1 })),
    () => durableObjectInbox({ namespace, shards: 0.5 }),
    () => durableObjectStore(untyped({ namespace, ttl: 1 })),
    () => durableObjectStore({ namespace, ttlMs: 0 }),
  ]
  for (const mistake of mistakes) expect(mistake).toThrow(expect.objectContaining({ code: 'invalid_option' }))
})

test('the sql of a transaction is for its function: late writes are refused, and a query that it returns never runs', async () => {
  const storage = storageInNode()
  storage.sql.exec('CREATE TABLE written (content TEXT)')
  const late: unknown[] = []
  const MediaInbox = inboxObject((_env, inbox) =>
    createReceiver({ verify: unverified(), logger: silent, inbox, retry: { attempts: 1 } })
      .onAny((_, { transaction }) => {
        const write = async (sql: ObjectSql) => {
          await null
          try {
            sql.exec("INSERT INTO written VALUES ('late')")
          } catch (error) {
            late.push(error)
          }
        }
        return transaction(untyped(write))
      })
      .onAny((_, { transaction }) => {
        const query = (sql: ObjectSql) => ({ then: () => sql.exec("INSERT INTO written VALUES ('lazy')") })
        return transaction(untyped(query))
      }),
  )
  const object = new MediaInbox({ storage }, {})
  await post(object, 'accept', eventOf('one'))
  await expect.poll(() => post(object, 'stats')).toMatchObject({ result: { deadLetters: 1 } })
  expect(late).toMatchObject([{ code: 'invalid_transaction', message: expect.stringMatching(/after the transaction/) }])
  const { result } = (await post(object, 'get', 'one')) as { result: { failures: unknown } }
  expect(result.failures).toMatchObject(
    Array(2).fill({ message: expect.stringMatching(/a promise, or a query it did not run/) }),
  )
  expect(storage.sql.exec('SELECT * FROM written').toArray()).toEqual([])
})
