import { describe, expect, test, vi } from 'vitest'
import * as z from 'zod/mini'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  createReceiver,
  defineSender,
  type InboxEvents,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
} from '../../src/index.ts'
import { deliver } from '../../src/testing/index.ts'
import { flat } from '../events/received.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { answeringInbox, listening, receiverWith } from './listening-receiver.ts'

const headers = { 'content-type': 'application/json', 'x-event-id': 'one' }

/** Makes a receiver that takes its keys from a header, and a function that delivers fields and waits for the comparison. */
function receiving(options: Partial<ReceiverOptions> = {}) {
  const { conflicts, lines, options: listeners } = listening()
  const receiver = receiverWith({ ...listeners, eventKey: { header: 'x-event-id' }, ...options })
  receiver.on('encoding.finished', () => {})
  const send = async (fields: object, id = 'one') => {
    const payload = JSON.stringify({ ...flat, ...fields })
    const { handled, outcome } = await deliver(receiver, payload, { headers: { ...headers, 'x-event-id': id } })
    await handled
    await new Promise((resolve) => setImmediate(resolve))
    return outcome
  }
  const warnings = () => lines.filter(({ level }) => level === 'warn')
  return { receiver, conflicts, warnings, send }
}

const inboxes = {
  'the memory inbox': async () => memoryInbox(),
  'the SQLite inbox': async () => sqliteInbox({ path: await freshPath() }),
}

describe.each(Object.entries(inboxes))('a key with two payloads, in %s', (_, makeInbox) => {
  test('is reported once, with the names of the fields that differ and no value', async () => {
    const { receiver, conflicts, warnings, send } = receiving({ inbox: await makeInbox() })
    expect(await send({ title: 'sent-71c3', extra: { a: [1, 2] } })).toBe('accepted')
    expect(await send({ title: 'sent-9a0e', extra: { a: [1, 3] }, added: 1 })).toBe('duplicate')
    expect(await send({ title: 'sent-0b5d' })).toBe('duplicate')
    const report = { key: 'one', type: flat.type, mediaId: flat.media_id, fields: ['title', 'extra', 'added'] }
    expect(conflicts).toEqual([report])
    expect(warnings()).toMatchObject([{ details: report, message: expect.stringContaining('different payload') }])
    expect(JSON.stringify(warnings())).not.toContain('sent-')
    await receiver.close()
  })

  test('is no conflict if only the time, or the form on the wire, differs', async () => {
    const { receiver, conflicts, send } = receiving({ inbox: await makeInbox() })
    const extra = { a: 1, b: [{ c: 2 }] }
    await send({ extra, empty: null })
    await send({ emitted_at: '2026-03-02T00:00:00Z', empty: '', extra: { b: [{ c: 2 }], a: 1 } })
    await send({ extra })
    expect(conflicts).toEqual([])
    await receiver.close()
  })
})

test.each([
  [{ list: [1] }, { list: { 0: 1 } }],
  [{ list: [1] }, { list: [1, 2] }],
  [{ list: { a: null } }, { list: {} }],
  [{ list: 0 }, {}],
  [{ list: false }, { list: 0 }],
])('%j and %j differ', async (first, second) => {
  const { conflicts, send } = receiving()
  await send(first)
  await send(second)
  expect(conflicts).toMatchObject([{ fields: ['list'] }])
})

test('fields in the data of an envelope are compared one by one', async () => {
  const { conflicts, send } = receiving()
  const envelope = (title: string, emitted_at: string) => ({
    type: undefined,
    event: 'encoding.finished',
    data: { videoId: 'v', title, emitted_at },
  })
  await send(envelope('one', '2026-03-01T00:00:00Z'))
  await send(envelope('one', '2026-03-02T00:00:00Z'))
  expect(conflicts).toEqual([])
  await send(envelope('other', '2026-03-02T00:00:00Z'))
  expect(conflicts).toMatchObject([{ fields: ['title'] }])
})

test('an event that another process has accepted is read from the inbox, once', async () => {
  const path = await freshPath()
  const retry = { attempts: 2, baseMs: 86_400_000, maxMs: 86_400_000 }
  const failing = () => {
    const { conflicts, options } = listening()
    const receiver = receiverWith({ ...options, inbox: sqliteInbox({ path }), eventKey: () => 'one', retry })
    receiver.on('encoding.finished', () => Promise.reject(new Error('no')))
    return { receiver, conflicts, send: (title: string) => deliver(receiver, JSON.stringify({ ...flat, title })) }
  }
  const first = failing()
  await first.send('one')
  await first.receiver.close()
  const { receiver, conflicts, send } = failing()
  const get = vi.spyOn(receiver.inbox.events as InboxEvents, 'get')
  await send('one')
  await send('other')
  await expect.poll(() => conflicts).toMatchObject([{ key: 'one', fields: ['title'] }])
  expect(get).toHaveBeenCalledTimes(1)
  await receiver.close()
})

test('an inbox that cannot be read, or has no events, answers its duplicates as before', async () => {
  const get = vi.fn(() => Promise.reject(new Error('no connection')))
  const events = {
    states: [],
    list: () => Promise.reject(new Error('no')),
    get,
    outcomes: () => [],
    retryNow: () => false,
  }
  for (const rest of [{}, { events: events as never }]) {
    const { conflicts, warnings, send } = receiving({ inbox: answeringInbox(() => 'duplicate', rest) })
    expect(await send({ title: 'one' })).toBe('duplicate')
    expect(await send({ title: 'other' })).toBe('duplicate')
    expect([conflicts, warnings()]).toEqual([[], []])
  }
  expect(get).toHaveBeenCalledTimes(2)
})

test("the event of a delivery with ack 'handled' is compared too", async () => {
  const { conflicts, send } = receiving({ ack: 'handled' })
  expect(await send({ title: 'one' })).toBe('handled')
  expect(await send({ title: 'other' })).toBe('duplicate')
  expect(conflicts).toMatchObject([{ fields: ['title'] }])
})

test('duplicates read one event at a time from the inbox', async () => {
  const get = vi.fn(() => new Promise<undefined>(() => {}))
  const events = { states: [], list: () => ({ events: [] }), get, outcomes: () => [], retryNow: () => false }
  const { send } = receiving({ inbox: answeringInbox(() => 'duplicate', { events }) })
  for (const id of ['one', 'two']) await send({}, id)
  expect(get.mock.calls).toEqual([['one']])
})

test('the payload of a look-up is not compared', async () => {
  const { receiver, conflicts, send } = receiving({ eventKey: ({ mediaId }) => mediaId })
  await receiver.accept({ type: 'encoding.finished', mediaId: flat.media_id, title: 'found' })
  expect(await send({ title: 'sent' })).toBe('duplicate')
  expect(conflicts).toEqual([])
})

test('the newest 1,000 events are remembered, large ones too', async () => {
  const { conflicts, send } = receiving({ inbox: memoryInbox() })
  for (let id = 0; id < 1_000; id++) await send({ title: 'one' }, `${id}`)
  await send({ title: 'x'.repeat(50_000) }, 'large')
  for (const id of ['1', 'large', '0']) expect(await send({ title: 'other' }, id)).toBe('duplicate')
  expect(conflicts.map(({ key, fields }) => [key, fields])).toEqual([
    ['1', ['title']],
    ['large', ['title']],
  ])
})

test('nothing of an accepted event is kept', async () => {
  const { receiver } = receiving()
  const parsed = { ...flat, list: [{}] }
  const ref = new WeakRef(parsed.list)
  const delivery = { method: 'POST', url: '/', headers: new Headers(headers), body: { parsed } }
  expect(await receiver.receive(delivery)).toMatchObject({ outcome: 'accepted' })
  await expect.poll(() => receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
  Object.assign(parsed, { list: [] })
  await collectGarbage()
  expect(ref.deref()).toBeUndefined()
})

test('an event with very many fields is compared, but its fields are not named', async () => {
  const { conflicts, send } = receiving()
  const fields = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`field ${i}`, i]))
  await send(fields)
  await send(Object.fromEntries(Object.entries(fields).reverse()))
  expect(conflicts).toEqual([])
  await send({ ...fields, 'field 299': 0 })
  expect(conflicts).toMatchObject([{ key: 'one', fields: [] }])
})

describe("what a sender's `read` takes from elsewhere, and the principal, are compared", () => {
  const sender = defineSender({
    name: 'own',
    events: { made: z.any(), gone: z.any() },
    read: ({ data }, from) => ({
      type: from.get('x-type') ?? '',
      mediaId: from.get('x-media') ?? '',
      id: from.get('x-event-id'),
      data,
    }),
  })
  const first = { 'x-type': 'made', 'x-media': 'a', 'x-event-id': 'one', 'x-tenant': 'north' }
  const verify = {
    name: 'tenants',
    needsBytes: false,
    verify: ({ headers: sent }: { headers: { get(name: string): string | null } }) =>
      ({ verified: true, principal: sent.get('x-tenant') ?? '' }) as const,
  }
  const body = JSON.stringify({ data: { type: 'made', mediaId: 'a' } })

  test.each([
    ['type', { 'x-type': 'gone' }],
    ['mediaId', { 'x-media': 'b' }],
    ['principal', { 'x-tenant': 'south' }],
  ])('another %s under one key', async (field, changed) => {
    const { conflicts, options } = listening()
    const eventKey = (event: { readonly key: string }) => (field === 'principal' ? 'one' : event.key)
    const receiver = createReceiver({ ...options, sender, verify, eventKey })
    receiver.onAny(() => {})
    for (const sent of [first, first, { ...first, ...changed }])
      await (await deliver(receiver, body, { headers: { ...headers, ...sent } })).handled
    expect(conflicts).toMatchObject([{ fields: [field] }])
    await receiver.close()
  })
})

test('duplicates that arrive at once are all compared with what the inbox has', async () => {
  const title = 'x'.repeat(20_000)
  const stored = (key: string) => ({ key, event: { key, source: 'delivery', payload: { ...flat, title } } })
  const events = {
    states: [],
    list: () => ({ events: [] }),
    get: stored as never,
    outcomes: () => [],
    retryNow: () => false,
  }
  const { conflicts, send } = receiving({ inbox: answeringInbox(() => 'duplicate', { events }) })
  const ids = Array.from({ length: 10 }, (_, i) => `${i}`)
  await Promise.all(ids.map((id) => send({ title: `${title}!` }, id)))
  await expect.poll(() => conflicts.map(({ key, fields }) => [key, fields])).toEqual(ids.map((id) => [id, ['title']]))
})

test('a handled event of another process is compared by what its record has', async () => {
  const record = { type: 'encoding.failed', mediaId: flat.media_id }
  const events = {
    states: [],
    list: () => ({ events: [] }),
    get: () => record as never,
    outcomes: () => [],
    retryNow: () => false,
  }
  const { conflicts, send } = receiving({ inbox: answeringInbox(() => 'duplicate', { events }) })
  await send({})
  await expect.poll(() => conflicts).toMatchObject([{ fields: ['type'] }])
})

function gate() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { ended, end }
}

describe("with ack 'handled'", () => {
  test('a delivery that joins a running attempt is compared, unless that fails', async () => {
    for (const fails of [false, true]) {
      const { receiver, conflicts, send } = receiving({ ack: 'handled' })
      const { ended, end } = gate()
      const slow = () => ended.then(() => fails && Promise.reject(new Error('no')))
      receiver.on('encoding.finished', slow as never, { name: 'slow' })
      const sent = ['one', 'one', 'other'].map((title) => send({ title }))
      end()
      expect(await Promise.all(sent)).toEqual(Array(3).fill(fails ? 'handler_failed' : 'handled'))
      expect(conflicts.map(({ fields }) => fields)).toEqual(fails ? [] : [['title']])
      await receiver.close()
    }
  })

  test('an event handled after its answer is compared', async () => {
    const { receiver, conflicts, send } = receiving({ ack: 'handled', ackTimeoutMs: 1 })
    const { ended, end } = gate()
    receiver.on('encoding.finished', () => ended, { name: 'slow' })
    const { outcome } = await deliver(receiver, JSON.stringify({ ...flat, title: 'one' }), { headers })
    end()
    expect(outcome).toBe('in_progress')
    await expect.poll(() => send({ title: 'other' })).toBe('duplicate')
    expect(conflicts).toMatchObject([{ fields: ['title'] }])
  })
})

describe('an event that was forgotten and accepted again', () => {
  const forgetful = () => memoryInbox({ store: lruStore({ max: 1 }) })

  test('is what its duplicates are compared with', async () => {
    const { conflicts, send } = receiving({ inbox: forgetful() })
    await send({ title: 'one' })
    await send({}, 'two')
    expect(await send({ title: 'x'.repeat(9_000) })).toBe('accepted')
    expect(await send({ title: 'x'.repeat(9_000) })).toBe('duplicate')
    expect(conflicts).toEqual([])
  })

  test('as a look-up is not compared', async () => {
    const { receiver, conflicts, send } = receiving({ inbox: forgetful(), eventKey: ({ mediaId }) => mediaId })
    await send({ title: 'one' })
    await send({ media_id: 'other' })
    expect(await receiver.accept({ type: 'encoding.finished', mediaId: flat.media_id, title: 'found' })).toBe(
      'accepted',
    )
    expect(await send({ title: 'sent' })).toBe('duplicate')
    expect(conflicts).toEqual([])
  })
})
