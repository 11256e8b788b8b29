import { describe, expect, test } from 'vitest'
import { KeyInput } from '../../src/events/kept-input.ts'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { parseDelivery } from '../../src/events/parse.ts'
import type { DeliveryReport, EventKeySource, MediaEvent, Verification } from '../../src/index.ts'
import { untyped } from '../support/untyped.ts'
import { eventOf, flat, receive } from './received.ts'

const marker = 'error-marker-2d1f'

async function answerWithKey(eventKey: EventKeySource) {
  const reports: DeliveryReport[] = []
  const { acknowledgement } = await receive(flat, {
    eventKey,
    hooks: { delivery: (report) => void reports.push(report) },
  })
  return { acknowledgement, report: reports[0] as DeliveryReport }
}

const internal = { status: 'error', code: 'internal', message: 'the receiver failed' }

describe('eventKey as a function', () => {
  test('gets the event with its default key, and the delivery', async () => {
    const { key } = await eventOf(flat)
    const eventKey: EventKeySource = (event, delivery) => `${event.key} ${delivery.headers.get('x-id')} ${delivery.url}`
    const { event } = await receive(flat, { eventKey }, { headers: { 'x-id': 'id-1' }, url: '/hook' })
    expect(event?.key).toBe(`${key} id-1 /hook`)
  })

  test('can leave out the time, for a sender whose retries do not repeat it', async () => {
    const first = { ...flat, emitted_at: '2026-03-01T12:00:00Z' }
    const retry = { ...flat, emitted_at: '2026-03-01T12:00:03Z' }
    const withoutTime: EventKeySource = ({ type, mediaId, userId, qualities, status }) =>
      JSON.stringify([type, mediaId, userId, qualities, status])
    expect((await eventOf(retry)).key).not.toBe((await eventOf(first)).key)
    const options = { eventKey: withoutTime }
    expect((await eventOf(retry, options)).key).toBe((await eventOf(first, options)).key)
  })

  test('has its long keys hashed', async () => {
    expect((await eventOf(flat, { eventKey: () => 'k'.repeat(256) })).key).toBe('k'.repeat(256))
    expect((await eventOf(flat, { eventKey: () => 'k'.repeat(257) })).key).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test('leads to 500 when it throws, without the message of the error', async () => {
    const error = new Error(marker)
    const { acknowledgement, report } = await answerWithKey(() => {
      throw error
    })
    expect(acknowledgement.status).toBe(500)
    expect(JSON.parse(acknowledgement.body)).toEqual(internal)
    expect(report).toMatchObject({ outcome: 'internal', error })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['an empty string', ''],
    ['a number', 7],
    ['an object', { marker }],
  ])('leads to 500 when it returns %s, and the report says why', async (_, key) => {
    const { acknowledgement, report } = await answerWithKey(() => key as string)
    expect(acknowledgement.status).toBe(500)
    expect(JSON.parse(acknowledgement.body)).toEqual(internal)
    expect(report.reason).toBe('eventKey must return a non-empty string')
  })

  // An unhandled rejection would fail the run.
  test.each([
    ['resolves', async () => marker],
    ['rejects', async () => Promise.reject(new Error(marker))],
  ])('leads to 500 when it is async and %s, and the report says why', async (_, key) => {
    const { acknowledgement, report } = await answerWithKey(untyped(key))
    expect(acknowledgement.status).toBe(500)
    expect(JSON.parse(acknowledgement.body)).toEqual(internal)
    expect(report.reason).toBe('eventKey returned a promise: it must return a string and cannot be async')
  })
})

describe('eventKey as a header', () => {
  const eventKey = { header: 'X-Event-Id' }
  const keyWith = async (headers: Record<string, string>) => (await receive(flat, { eventKey }, { headers })).event?.key

  test('takes the id from the header, in any case', async () => {
    expect(await keyWith({ 'x-event-id': 'id-1' })).toBe('id-1')
    expect(await keyWith({ 'X-EVENT-ID': 'id-1' })).toBe('id-1')
  })

  test('falls back on the default key if the header is missing or empty', async () => {
    const { key } = await eventOf(flat)
    expect(await keyWith({})).toBe(key)
    expect(await keyWith({ 'x-event-id': '' })).toBe(key)
  })

  test.each<[string, string, Record<string, string>]>([
    ['comes before the event id of the verifier', 'id-1', { 'x-event-id': 'id-1' }],
    ['falls back on the event id of the verifier if the header is missing', 'signed-id', {}],
    ['falls back on the event id of the verifier if the header is empty', 'signed-id', { 'x-event-id': '' }],
  ])('%s', async (_, key, headers) => {
    const signed: Verification = { verified: true, eventId: 'signed-id' }
    const verify = { name: 'mine', needsBytes: false, verify: () => signed }
    const { event } = await receive(flat, { eventKey, verify }, { headers })
    expect(event?.key).toBe(key)
  })

  test.each(['overdue:rule:one', 'unreadable:0f', 'handler:1:a:one', 'sha256:0f', '["a","b"]', 'given:one'])(
    'keeps the id %s apart from keys that are made here',
    async (id) => {
      expect(await keyWith({ 'x-event-id': id })).toBe(`given:${id}`)
    },
  )

  test('hashes a long id', async () => {
    expect(await keyWith({ 'x-event-id': 'i'.repeat(257) })).toMatch(/^sha256:[0-9a-f]{64}$/)
  })
})

test('a key from a function stays apart from those that inboxes make, and may be the default key', async () => {
  expect((await eventOf(flat, { eventKey: () => 'overdue:rule:one' })).key).toBe('given:overdue:rule:one')
  for (const key of ['sha256:0f', '["a"]']) expect((await eventOf(flat, { eventKey: () => key })).key).toBe(key)
  const { key } = await eventOf(flat)
  expect((await eventOf(flat, { eventKey: (event) => event.key })).key).toBe(key)
})

describe('an unreadable delivery that is parsed again, without its headers,', () => {
  const keyInput = new KeyInput()
  const parse = async (keySource: EventKeySource) => {
    const parsing = { sender: mediaService, keySource, keyInput, maxValues: 100 }
    const body = new TextEncoder().encode(JSON.stringify(flat))
    return (await parseDelivery(parsing, body, undefined, { eventId: 'id-7' })) as MediaEvent
  }

  test('keeps the id that was taken from its header', async () => {
    expect((await parse({ header: 'x-event-id' })).key).toBe('id-7')
  })

  test('gets its key from a function that needs no delivery, and keeps its id if the function needs one', async () => {
    expect((await parse(({ mediaId }) => mediaId)).key).toBe(flat.media_id)
    expect((await parse((_, { url }) => url)).key).toBe('id-7')
    expect((await parse(untyped(async () => Promise.reject(new Error(marker))))).key).toBe('id-7')
  })
})
