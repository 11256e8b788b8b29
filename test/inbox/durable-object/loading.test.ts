import { expect, test, vi } from 'vitest'
import { type InboxObjectOptions, inboxObject } from '../../../src/cloudflare.ts'
import { createReceiver, type Handler, type InboxStats, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

/** Objects over one storage, each after the end of the one before. `read` has the rows of the events that they read. */
function objects(limits: InboxObjectOptions = {}) {
  const storage = storageInNode()
  const { exec } = storage.sql
  const read: unknown[] = []
  const errors: unknown[] = []
  storage.sql.exec = (query, ...bindings) => {
    if (query.startsWith('SELECT * FROM inbox_event WHERE id')) read.push(bindings[0])
    return exec(query, ...bindings)
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
      return ((await (await object.fetch(request)).json()) as { result: unknown }).result
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
])('an object wakes with some of its events %s, and loads the others as these end', async (_, count, size, first) => {
  const { open, leave, read } = objects()
  open(never)
  leave(keysTo(count), 'x'.repeat(size))
  const handled: string[] = []
  let isHeld = true
  const { ask, stats, alarm } = open(async (_event, { key }) => {
    if (isHeld) await vi.waitUntil(() => !isHeld, { timeout: 10_000 })
    handled.push(key)
  })
  expect(read.length).toBeLessThanOrEqual(first + 1)
  expect((await stats()).waiting).toBeGreaterThanOrEqual(count - 16)
  expect(await ask('accept', eventOf('new'))).toBe('accepted')
  expect(await ask('accept', eventOf('new'))).toBe('duplicate')
  expect(await ask('accept', eventOf(`key ${count - 1}`))).toBe('duplicate')
  isHeld = false
  await alarm()
  await vi.waitFor(async () => expect(await stats()).toMatchObject({ waiting: 0, running: 0 }), { timeout: 20_000 })
  expect([handled.length, new Set(handled).size, handled.at(-1)]).toEqual([count + 1, count + 1, 'new'])
})

test('an object counts the events that it has not loaded against maxWaiting', async () => {
  const { open, leave } = objects({ maxWaiting: 1_100, concurrency: 1 })
  open(never)
  leave(keysTo(1_100))
  const { ask, stats } = open(never)
  await vi.waitFor(async () => expect((await stats()).running).toBe(1))
  expect(await ask('accept', eventOf('one'))).toBe('accepted')
  expect(await ask('accept', eventOf('two'))).toBe('overloaded')
  expect(await stats()).toMatchObject({ waiting: 1_100, running: 1, oldestWaitingAt: expect.any(String) })
})

test('an object starts the retry of an event that it has not loaded', async () => {
  const { open, leave, exec } = objects({ concurrency: 1 })
  open(never)
  leave(keysTo(1_100))
  exec('UPDATE inbox_event SET due_at = ?, delay_ms = 60000 WHERE id = 1100', Date.now() + 60_000)
  const { ask } = open(never)
  expect(await ask('retryNow', 'key 1098')).toBe(false)
  expect(await ask('retryNow', 'key 1099')).toBe(true)
  expect(await ask('event', 'key 1099')).toMatchObject({ state: 'waiting' })
})

test('an event that cannot be read stays in the storage of an object, is logged, and holds up nothing', async () => {
  const { open, leave, errors, exec } = objects()
  open(never)
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
  expect(await ask('events', {})).toMatchObject({ found: [{ record: { key: 'later' } }, { record: { key: 'sound' } }] })
})
