import { expect, onTestFinished, test } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { durableObjectInbox, type ObjectNamespace } from '../../../src/inbox/durable-object/cloudflare.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { InboxDefinition } from '../../../src/inbox/inbox.ts'
import type { EventQuery, InboxEvents } from '../../../src/inbox/reading.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { ObjectsInNode } from './objects-in-node.ts'
import { mediaIn, shards } from './sharded-media.ts'
import { storageInNode } from './storage-in-node.ts'

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const
const later = { ...dead, status: 'retry', delayMs: 3_600_000 } as const

function opened() {
  const objects = new ObjectsInNode(shards)
  const { inbox, calls } = openInbox(defineInbox({ name: 'in node', open: (host) => objects.open(host) }))
  onTestFinished(async () => {
    calls.finishAll()
    await inbox.close({ timeoutMs: 1_000 })
  })
  return { inbox, calls, events: inbox.events as InboxEvents, asked: objects.asked }
}

/** Accepts 23 events, a second apart, which the objects have in no order. The third of each is handled. */
async function withEvents() {
  const subject = opened()
  const order = [0, 0, 2, 1, 3, 3, 3, 0, 1, 2, 2, 0, 0, 0, 0, 1, 0, 0, 2, 1, 1, 3, 0]
  const keys = order.map((_, index) => `key ${index}`)
  for (const [index, shard] of order.entries()) {
    const { event } = eventOf(`key ${index}`, mediaIn(shard)[0])
    await subject.inbox.accept({ event, receivedAt: new Date(Date.UTC(2026, 2, 1, 12, 0, index)) })
    ;(await subject.calls.next()).finish(index % 3 === 0 ? undefined : later)
  }
  await until(async () => (await subject.inbox.stats()).retrying === order.filter((_, index) => index % 3 > 0).length)
  return { ...subject, keys }
}

async function pages(events: InboxEvents, query: EventQuery): Promise<string[][]> {
  const all: string[][] = []
  let cursor: string | undefined
  do {
    const page = await events.list(cursor === undefined ? query : { ...query, cursor })
    all.push(page.events.map(({ key }) => key))
    cursor = page.cursor
  } while (cursor !== undefined && all.length < 100)
  return all
}

test('the events of all objects are listed once, page by page, in both orders', async () => {
  const { events, keys } = await withEvents()
  for (const limit of [1, 2, 5, 23, 100]) {
    const oldest = await pages(events, { order: 'oldest', limit })
    expect(oldest.flat()).toEqual(keys)
    expect(Math.max(...oldest.map((page) => page.length))).toBe(Math.min(limit, keys.length))
    expect((await pages(events, { limit })).flat()).toEqual(keys.toReversed())
  }
  const handled = keys.filter((_, index) => index % 3 === 0)
  expect((await pages(events, { state: 'handled', order: 'oldest', limit: 2 })).flat()).toEqual(handled)
})

test('only the object of a media item is asked for the events of that media item', async () => {
  const { inbox, calls, events, asked } = opened()
  const [media = ''] = mediaIn(2)
  await inbox.accept(eventOf('one', media))
  await calls.next()
  asked.length = 0
  expect(await inbox.history?.(media)).toMatchObject([{ key: 'one', state: 'running' }])
  expect(await events.list({ mediaId: media })).toMatchObject({ events: [{ key: 'one' }] })
  expect(asked).toEqual([
    { name: 'media-webhooks-2', step: 'history' },
    { name: 'media-webhooks-2', step: 'events' },
  ])
})

test('a retry that is started by hand is guarded by the alarm, which was set for its time', async () => {
  const storage = storageInNode()
  const alarms: number[] = []
  storage.setAlarm = async (at) => void alarms.push(at - Date.now())
  const limits = { concurrency: 16, maxWaiting: 100, maxDeadLetters: 100, ttlMs: 86_400_000 }
  let object: ObjectInbox | undefined
  const open: InboxDefinition['open'] = (host) => {
    object = new ObjectInbox(host, storage, limits)
    return object
  }
  const { inbox, calls } = openInbox(defineInbox({ name: 'an object', open }))
  onTestFinished(async () => void (await inbox.close({ timeoutMs: 0 })))
  await inbox.accept(eventOf('one'))
  ;(await calls.next()).finish(later)
  await until(async () => (await inbox.stats()).retrying === 1)
  await object?.alarm()
  expect(alarms.at(-1)).toBeGreaterThan(3_000_000)
  expect(await inbox.events?.retryNow('one')).toBe(true)
  expect(alarms.at(-1)).toBeLessThan(60_000)
})

test('the oldest waiting event is that of any object', async () => {
  const { inbox, calls } = opened()
  const [first = '', second = ''] = mediaIn(1, 2)
  const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 12, 0, second))
  for (const [index, media] of [first, second, first, second].entries())
    await inbox.accept({ ...eventOf(`key ${index}`, media), receivedAt: at(9 - index) })
  await calls.next()
  await calls.next()
  expect(await inbox.stats()).toMatchObject({ waiting: 2, running: 2, oldestWaitingAt: at(6) })
})

test('all dead letters are replayed, oldest first, with one request for each', async () => {
  const { inbox, calls, asked } = opened()
  const media = mediaIn(0, 1, 2, 3, 0, 1)
  for (const [index, each] of media.entries()) {
    await inbox.accept(eventOf(`key ${index}`, each))
    ;(await calls.next()).finish(dead)
    await until(async () => (await inbox.stats()).deadLetters === index + 1)
    // Deaths of one millisecond have no order over several objects.
    const now = Date.now()
    await until(async () => Date.now() > now)
  }
  asked.length = 0
  const report = await inbox.deadLetters.replayAll?.({ perSecond: 1_000 })
  expect(report).toEqual({ total: 6, replayed: 6, kept: 0 })
  const replays = asked.filter(({ step }) => step === 'replay').map(({ name }) => name)
  expect(replays).toEqual([0, 1, 2, 3, 0, 1].map((shard) => `media-webhooks-${shard}`))
  expect(asked).toHaveLength(shards + 6)
})

test('a cursor of another number of objects is an error', async () => {
  const { events } = opened()
  for (const cursor of ['["1"]', '[1,2,3,4]', '["a","","",""]', '{}', '12', ''])
    await expect(Promise.resolve(events.list({ cursor }))).rejects.toMatchObject({ code: 'invalid_option' })
})

test('a page that an object could not fill in its time ends the page, and loses no event', async () => {
  const record = (key: string, second: number) => {
    const { event } = eventOf(key)
    const receivedAt = new Date(Date.UTC(2026, 2, 1, 12, 0, second))
    return { key, type: event.type, mediaId: key, state: 'handled', receivedAt, attempts: 1, failedAttempts: [] }
  }
  const place = (id: number, key: string, second: number) => ({ id, record: record(key, second) })
  // The first object has read as many rows as it may without finding anything, and then finds the newest event.
  const answers: Record<string, { found: unknown[]; cursor?: string }> = {
    'media-webhooks-0': { found: [], cursor: '500' },
    'media-webhooks-0 after 500': { found: [place(1, 'newest', 9), place(2, 'oldest', 1)] },
    'media-webhooks-1': { found: [place(7, 'middle', 5)] },
  }
  const namespace: ObjectNamespace = {
    idFromName: (name) => ({ name }),
    get: (id) => ({
      async fetch(_url, { body }) {
        const { cursor } = JSON.parse(body).input
        const name = (id as { name: string }).name
        return { json: async () => ({ result: answers[cursor === undefined ? name : `${name} after ${cursor}`] }) }
      },
    }),
  }
  const { inbox } = openInbox(durableObjectInbox({ namespace, shards: 2 }))
  expect(await pages(inbox.events as InboxEvents, {})).toEqual([[], ['newest', 'middle', 'oldest']])
})
