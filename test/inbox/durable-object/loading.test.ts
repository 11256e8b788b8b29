import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type InboxObjectOptions, inboxObject } from '../../../src/cloudflare.ts'
import { openStorage } from '../../../src/inbox/durable-object/storage.ts'
import { createReceiver, type Handler, type InboxStats, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

/** Objects over one storage, each after the end of the one before. `read` has the ids of the events that they read. */
function objects(limits: InboxObjectOptions = {}) {
  const storage = storageInNode()
  const { exec } = storage.sql
  openStorage(storage)
  const read: unknown[] = []
  const errors: unknown[] = []
  storage.sql.exec = (query, ...bindings) => {
    const found = exec(query, ...bindings)
    if (!query.startsWith('SELECT * FROM inbox_event')) return found
    const rows = found.toArray()
    read.push(...rows.map(({ id }) => id))
    return { toArray: () => rows }
  }
  const logger = { ...silent, error: (details: object, message: string) => void errors.push([message, details]) }
  const open = (handler: Handler) => {
    const MediaInbox = inboxObject(
      (_env, inbox) => createReceiver({ verify: unverified(), logger, inbox }).onAny(handler),
      limits,
    )
    const object = new MediaInbox({ storage }, {})
    const ask = async (step: string, input?: unknown) => {
      const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
      const answer = (await (await object.fetch(request)).json()) as { result?: unknown; error?: { code: string } }
      return answer.error?.code ?? answer.result
    }
    return { ask, stats: async () => (await ask('stats')) as InboxStats, alarm: () => object.alarm() }
  }
  /** Stores events without an object. */
  const leave = (keys: readonly string[], title = '') => {
    storage.transactionSync(() => {
      for (const key of keys) {
        const { event } = eventOf(key)
        const json = JSON.stringify({ ...event, payload: { ...event.payload, title } })
        exec('INSERT INTO inbox_key (hash, accepted_at, media) VALUES (?, ?, ?)', JSON.stringify(key), Date.now(), 1)
        exec('INSERT INTO inbox_event (id, event, received_at) SELECT max(id), ?, ? FROM inbox_key', json, Date.now())
      }
    })
  }
  return { open, leave, read, errors, exec }
}

const never = () => new Promise<void>(() => {})
const keysTo = (count: number) => Array.from({ length: count }, (_, i) => `key ${i}`)

test.each([
  ['that are many', 2_500, 0, 1_000],
  ['that are large', 20, 1_000_000, 16],
])('an object wakes with some of its events %s, and claims the others as these end', async (_, count, size, first) => {
  const { open, leave, read } = objects()
  leave(keysTo(count), 'x'.repeat(size))
  const handled: string[] = []
  let isHeld = true
  const { ask, stats, alarm } = open(async (_event, { key }) => {
    if (isHeld) await vi.waitUntil(() => !isHeld, { timeout: 10_000 })
    handled.push(key)
  })
  await vi.waitFor(async () => expect((await stats()).running).toBe(16))
  await sleep(50)
  expect(new Set(read).size).toBeLessThanOrEqual(first + 1)
  expect((await stats()).waiting).toBe(count - 16)
  expect(await ask('accept', eventOf('new'))).toBe('accepted')
  expect(await ask('accept', eventOf('new'))).toBe('duplicate')
  expect(await ask('accept', eventOf(`key ${count - 1}`))).toBe('duplicate')
  isHeld = false
  await alarm()
  await vi.waitFor(async () => expect(await stats()).toMatchObject({ waiting: 0, running: 0 }), { timeout: 20_000 })
  expect([handled.length, new Set(handled).size, handled.at(-1)]).toEqual([count + 1, count + 1, 'new'])
})

test('an event that finds no memory in an object is claimed once there is some, before later ones of its media', async () => {
  const { open } = objects({ concurrency: 32 })
  const handled: string[] = []
  const ends = new Map<string, () => void>()
  const { ask } = open(async (_event, { key }) => {
    if (key.startsWith('large')) await new Promise<void>((resolve) => ends.set(key, resolve))
    handled.push(key)
  })
  for (let index = 0; index < 16; index++) {
    const { event, ...rest } = eventOf(`large ${index}`)
    const large = { ...rest, event: { ...event, payload: { ...event.payload, title: 'x'.repeat(1_000_000) } } }
    expect(await ask('accept', large)).toBe('accepted')
  }
  await vi.waitFor(() => expect(ends.size).toBe(16))
  expect(await ask('accept', eventOf('one', 'small'))).toBe('accepted')
  await sleep(50)
  expect(handled).toEqual([])
  for (const key of ['large 0', 'large 1']) ends.get(key)?.()
  expect(await ask('accept', eventOf('two', 'small'))).toBe('accepted')
  await vi.waitFor(() => expect(handled).toEqual(['large 0', 'large 1', 'one', 'two']))
})

test('an object counts the events that it does not hold against maxWaiting', async () => {
  const { open, leave } = objects({ maxWaiting: 1_100, concurrency: 1 })
  leave(keysTo(1_100))
  const { ask, stats } = open(never)
  await vi.waitFor(async () => expect((await stats()).running).toBe(1))
  expect(await ask('accept', eventOf('one'))).toBe('accepted')
  expect(await ask('accept', eventOf('two'))).toBe('overloaded')
  expect(await stats()).toMatchObject({ waiting: 1_100, running: 1, oldestWaitingAt: expect.any(String) })
})

test('an object starts the retry of an event that it does not hold', async () => {
  const { open, leave, exec } = objects({ concurrency: 1 })
  leave(keysTo(1_100))
  exec('UPDATE inbox_event SET due_at = ?, delayed_at = ? WHERE id = 1100', Date.now() + 60_000, Date.now())
  const { ask } = open(never)
  expect(await ask('retryNow', 'key 1098')).toBe(false)
  expect(await ask('retryNow', 'key 1099')).toBe(true)
  expect(await ask('event', 'key 1099')).toMatchObject({ state: 'waiting' })
})

test('an event that cannot be read stays in the storage of an object, is logged, and holds up nothing', async () => {
  const { open, leave, errors, exec } = objects()
  leave(['damaged', 'sound'])
  exec("UPDATE inbox_event SET event = '{' WHERE id = 1")
  const handled: string[] = []
  const { ask, alarm } = open(async (_event, { key }) => void handled.push(key))
  await alarm()
  await vi.waitFor(() => expect(handled).toEqual(['sound']))
  const message = 'an event of the inbox cannot be read, and stays in its storage'
  expect(errors).toEqual([[message, { row: 1, err: expect.objectContaining({ name: 'UnreadableEvent' }) }]])
  expect(await ask('accept', eventOf('damaged'))).toBe('duplicate')
  expect(await ask('accept', eventOf('later'))).toBe('accepted')
  await vi.waitFor(() => expect(handled).toEqual(['sound', 'later']))
  // It does not keep the object recovering, which would record each start.
  expect(exec('SELECT running FROM inbox_owner').toArray()).toEqual([{ running: null }])
  expect(await ask('events', {})).toMatchObject({ found: [{ record: { key: 'later' } }, { record: { key: 'sound' } }] })
})
