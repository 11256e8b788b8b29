import { describe, expect, test, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { type InboxEvents, memoryInbox, type ReceiverOptions } from '../../src/index.ts'
import { deliver } from '../../src/testing/index.ts'
import { flat } from '../events/received.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
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
  const retry = { attempts: 2, baseMs: 3_600_000 }
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

test('the newest 1,000 events are remembered, without those that are large', async () => {
  const { conflicts, send } = receiving({ inbox: memoryInbox() })
  await send({ title: 'x'.repeat(5_000) }, 'large')
  for (let id = 0; id <= 1_000; id++) await send({ title: 'one' }, `${id}`)
  for (const id of ['1', 'large', '0']) expect(await send({ title: 'other' }, id)).toBe('duplicate')
  expect(conflicts.map(({ key }) => key)).toEqual(['1'])
})
