import { expect, test, vi } from 'vitest'
import { type InboxObjectOptions, inboxObject } from '../../../src/inbox/durable-object/cloudflare.ts'
import { makeDatabase } from '../../../src/inbox/durable-object/database.ts'
import { makeTables } from '../../../src/inbox/sqlite/schema.ts'
import { createReceiver, type Handler, type InboxStats, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { insertWaiting } from '../sqlite/seed.ts'
import { storageInNode } from './storage-in-node.ts'

const keysTo = (count: number) => Array.from({ length: count }, (_, i) => `key ${i}`)

/** Opens an object over a storage in which events wait. `change` is SQL to run before. */
function objectWith(
  keys: readonly string[],
  handler: Handler,
  options: InboxObjectOptions = {},
  title = '',
  change = '',
) {
  const storage = storageInNode()
  const database = makeDatabase(storage.sql)
  makeTables(database)
  insertWaiting(
    database,
    keys.map((key) => ({ key, title })),
    (key) => JSON.stringify(key),
  )
  if (change !== '') database.exec(change)
  const { logger, lines } = recordingLogger('info')
  const make: Parameters<typeof inboxObject>[0] = (_env, inbox) =>
    createReceiver({ verify: unverified(), logger, inbox }).onAny(handler)
  const MediaInbox = inboxObject(make, options)
  const object = new MediaInbox({ storage }, {})
  const ask = async (step: string, input?: unknown) => {
    const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
    return ((await (await object.fetch(request)).json()) as { result?: unknown }).result
  }
  return { ask, stats: async () => (await ask('stats')) as InboxStats, alarm: () => object.alarm(), lines }
}

const never = () => new Promise<void>(() => {})

test.each([
  ['that are many', 2_500, 0],
  ['that are large', 20, 1_000_000],
])('an object wakes with events %s, and handles each once, new ones too', async (_, count, size) => {
  const handled: string[] = []
  let isHeld = true
  const handler: Handler = async (_event, { key }) => {
    if (isHeld) await vi.waitUntil(() => !isHeld, { timeout: 10_000 })
    handled.push(key)
  }
  const { ask, stats, alarm } = objectWith(keysTo(count), handler, {}, 'x'.repeat(size))
  await vi.waitFor(async () => expect(await stats()).toMatchObject({ running: 16, waiting: count - 16 }))
  expect(await ask('accept', eventOf('new'))).toBe('accepted')
  expect(await ask('accept', eventOf('new'))).toBe('duplicate')
  expect(await ask('accept', eventOf(`key ${count - 1}`))).toBe('duplicate')
  isHeld = false
  await alarm()
  await vi.waitFor(async () => expect(await stats()).toMatchObject({ waiting: 0, running: 0 }), { timeout: 20_000 })
  expect([handled.length, new Set(handled).size]).toEqual([count + 1, count + 1])
})

test('an object counts the events that it finds against maxWaiting', async () => {
  const { ask, stats } = objectWith(keysTo(1_100), never, { maxWaiting: 1_100, concurrency: 1 })
  await vi.waitFor(async () => expect((await stats()).running).toBe(1))
  expect(await ask('accept', eventOf('one'))).toBe('accepted')
  expect(await ask('accept', eventOf('two'))).toBe('overloaded')
  expect(await stats()).toMatchObject({ waiting: 1_100, running: 1, oldestWaitingAt: expect.any(String) })
})

test('an object starts the retry of an event that it finds', async () => {
  const later = `UPDATE inbox_event SET due_at = ${Date.now() + 60_000}, delayed_at = ${Date.now()} WHERE id = 100`
  const { ask } = objectWith(keysTo(100), never, { concurrency: 1 }, '', later)
  expect(await ask('retryNow', 'key 98')).toBe(false)
  expect(await ask('retryNow', 'key 99')).toBe(true)
  expect(await ask('event', 'key 99')).toMatchObject({ state: 'waiting' })
})

test('an event that cannot be read becomes a dead letter of its object, is logged, and holds up nothing', async () => {
  const handled: string[] = []
  const damage = "UPDATE inbox_event SET event = '{' WHERE id = 1"
  const handler: Handler = async (_event, { key }) => void handled.push(key)
  const { ask, stats, alarm, lines } = objectWith(['damaged', 'sound'], handler, {}, '', damage)
  await alarm()
  await vi.waitFor(() => expect(handled).toEqual(['sound']))
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'an event became a dead letter: its stored event is damaged', details: { id: 1 } },
  ])
  expect(await stats()).toMatchObject({ waiting: 0, deadLetters: 1 })
  expect(await ask('accept', eventOf('damaged'))).toBe('duplicate')
  expect(await ask('accept', eventOf('later'))).toBe('accepted')
  await vi.waitFor(() => expect(handled).toEqual(['sound', 'later']))
})
