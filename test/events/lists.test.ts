import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { defineSender, type ListedEvent, memoryInbox, type Verifier } from '../../src/index.ts'
import { receiving } from './senders.ts'

const entry = z.object({ n: z.number() })

/** A sender of lists, such as SendGrid. */
const batches = defineSender({
  name: 'batches',
  events: { done: entry, failed: entry },
  read: (entries: { type: string; film: string; id?: string; n: unknown }[]) =>
    entries.map(({ type, film, id, ...data }): ListedEvent => ({ type, mediaId: film, id, data })),
})

const done = (id: string | undefined, n: unknown = 1, fields: object = {}) => ({
  type: 'done',
  film: 'm1',
  id,
  n,
  ...fields,
})
const vouching: Verifier = { name: 'v', needsBytes: false, verify: () => ({ verified: true, eventId: 'delivery-1' }) }

describe('a delivery with a list of events', () => {
  test('is answered with how many were new, and each is handled, in order', async () => {
    const { handled, send } = receiving(batches)
    const first = await send([done('1'), done('2')])
    expect([first.status, JSON.parse(first.body)]).toEqual([200, { status: 'accepted', events: { accepted: 2 } }])
    const second = await send([done('2'), done('3')])
    expect(JSON.parse(second.body)).toEqual({ status: 'accepted', events: { duplicate: 1, accepted: 1 } })
    const third = await send([done('3'), done('3')])
    expect(JSON.parse(third.body)).toEqual({ status: 'duplicate', events: { duplicate: 2 } })
    await expect.poll(() => handled.map(({ key }) => key)).toEqual(['1', '2', '3'])
    expect(handled[0]).toMatchObject({ type: 'done', mediaId: 'm1', data: { n: 1 }, payload: { n: 1 } })
  })

  test('keeps apart events without ids, by what they say', async () => {
    const { handled, send } = receiving(batches)
    await send([done(undefined, 1), done(undefined, 2), done(undefined, 1)])
    await expect.poll(() => handled.map(({ data }) => data.n)).toEqual([1, 2])
  })

  test('has one id for all, if only the verifier or a header has one: it is that of none alone', async () => {
    for (const options of [{ verify: vouching }, { eventKey: { header: 'x-id' } }]) {
      const { handled, send } = receiving(batches, options)
      const list = [done(undefined, 1), done(undefined, 1)]
      expect(JSON.parse((await send(list, { 'x-id': 'delivery-1' })).body).events).toEqual({ accepted: 2 })
      expect(JSON.parse((await send(list, { 'x-id': 'delivery-1' })).body).events).toEqual({ duplicate: 2 })
      await expect
        .poll(() => handled.map(({ key }) => key))
        .toEqual(['given:["delivery-1",0]', 'given:["delivery-1",1]'])
    }
  })

  test('is malformed as a whole if one of them is, which it names by its place', async () => {
    const { handled, send, deadLetters } = receiving(batches)
    const answer = await send([done('1'), done('2', 'secret')])
    expect(JSON.parse(answer.body)).toEqual({
      status: 'error',
      code: 'malformed',
      message: 'event 1 of the list: field data.n: does not match its schema',
    })
    expect(handled).toEqual([])
    expect(await deadLetters.list()).toHaveLength(1)
  })

  test('is replayed as a whole once it can be read', async () => {
    let isFixed = false
    const sender = defineSender({
      name: 'mine',
      events: { done: entry },
      read: (list: object[]) =>
        isFixed ? list.map((data, n) => ({ type: 'done', mediaId: 'm', id: `${n}`, data })) : (null as never),
    })
    const { handled, send, deadLetters } = receiving(sender)
    await send([{ n: 1 }, { n: 2 }])
    isFixed = true
    const [{ key } = { key: '' }] = await deadLetters.list()
    expect(await deadLetters.replay(key)).toBe(true)
    await expect.poll(() => handled.map(({ data }) => data.n)).toEqual([1, 2])
    expect(await deadLetters.list()).toEqual([])
  })

  test('is answered 503 as a whole if there is no room for all', async () => {
    const { receiver, send, handled } = receiving(batches, { inbox: memoryInbox({ maxWaiting: 1, concurrency: 1 }) })
    expect(await send([done('1'), done('2'), done('3')])).toMatchObject({ status: 503, outcome: 'overloaded' })
    expect(handled).toEqual([])
    await receiver.close()
  })

  test('waits for all of its handlers with ack handled, and fails if one does', async () => {
    const { receiver, send, handled } = receiving(batches, { ack: 'handled' })
    expect(JSON.parse((await send([done('1'), done('2')])).body)).toEqual({ status: 'handled', events: { handled: 2 } })
    receiver.onAny(
      ({ key }) => {
        if (key === '4') throw new Error('no')
      },
      { name: 'fails' },
    )
    expect(await send([done('3'), done('4')])).toMatchObject({ status: 500, outcome: 'handler_failed' })
    expect(handled.map(({ key }) => key)).toEqual(['1', '2', '3', '4'])
  })

  test.each<[string, unknown, string]>([
    ['5,000 events', Array(5_000).fill({}), 'the body has more than 4096 values'],
    ['a text among them', [done('1'), 'secret'], 'event 1 of the list: field type: expected a non-empty string'],
    ['a list among them', [[done('1')]], 'event 0 of the list: field type: expected a non-empty string'],
  ])('with %s is malformed', async (_, list, message) => {
    const { send } = receiving(batches)
    const answer = await send(list as object, {})
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'malformed', message })
    expect(answer.body).not.toContain('secret')
  })

  test('has at most 1,000 events', async () => {
    const { send } = receiving(batches, { maxJsonValues: 100_000, maxBodyBytes: 10_000_000 })
    const list = Array.from({ length: 1_001 }, (_, n) => done(`${n}`))
    expect(JSON.parse((await send(list)).body).message).toBe('the list has more than 1000 events')
    expect(JSON.parse((await send(list.slice(1))).body)).toEqual({ status: 'accepted', events: { accepted: 1_000 } })
  })

  test.each<[string, unknown]>([
    ['no data', [{ type: 'done', mediaId: 'm' }]],
    ['a text as data', [{ type: 'done', mediaId: 'm', data: 'secret' }]],
    ['null among them', [null]],
    ['data that is no JSON', [{ type: 'done', mediaId: 'm', data: { n: 1n } }]],
  ])('is malformed if read returns %s', async (_, events) => {
    const sender = defineSender({ name: 'mine', events: { done: entry }, read: () => events as never })
    const answer = await receiving(sender).send({})
    expect(answer).toMatchObject({ status: 400 })
    expect(JSON.parse(answer.body).message).toMatch(/^event 0 of the list: /)
    expect(answer.body).not.toContain('secret')
  })
})

test.each([
  ['nothing', undefined],
  ['an empty list', []],
])('a delivery for which read returns %s is ignored, and no dead letter', async (_, events) => {
  const sender = defineSender({ name: 'mine', events: { done: entry }, read: () => events })
  const { send, handled, deadLetters } = receiving(sender)
  const answer = await send({ ping: true })
  expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { status: 'ignored' }])
  expect([handled, await deadLetters.list()]).toEqual([[], []])
})

test.each(['1', '"text"', 'null', 'true'])('a body of %s is neither an object nor a list', async (body) => {
  const answer = await receiving(batches).send(body)
  expect(JSON.parse(answer.body)).toMatchObject({
    code: 'malformed',
    message: 'the body is neither a JSON object nor a list',
  })
})

describe('events without an id', () => {
  const bunny = (options: object = {}) =>
    defineSender({
      name: 'bunny',
      events: { 3: z.object({ VideoGuid: z.string() }) },
      read: ({ Status, VideoGuid }) => ({ type: `${Status}`, mediaId: VideoGuid }),
      ...options,
    })
  const finished = { VideoLibraryId: 1, VideoGuid: 'm1', Status: 3 }
  const warnings = (lines: readonly { level: string; message: string }[]) =>
    lines.filter(({ level }) => level === 'warn').map(({ message }) => message)

  test('and without a time count as one if their bodies are equal, which is said once', async () => {
    const { handled, send, lines } = receiving(bunny())
    for (let n = 0; n < 3; n++) await send(finished)
    expect(handled).toHaveLength(1)
    expect(warnings(lines)).toEqual([
      'events of bunny have neither an id nor a time, so those with equal bodies count as one: choose identity in defineSender',
    ])
  })

  test("count as one without a word if identity is 'body'", async () => {
    const { handled, send, lines } = receiving(bunny({ identity: 'body' }))
    for (let n = 0; n < 3; n++) await send(finished)
    expect([handled.length, warnings(lines)]).toEqual([1, []])
  })

  test("are each handled if identity is 'delivery'", async () => {
    const { handled, send, lines } = receiving(bunny({ identity: 'delivery' }))
    for (let n = 0; n < 3; n++) expect(await send(finished)).toMatchObject({ outcome: 'accepted' })
    expect(new Set(handled.map(({ key }) => key)).size).toBe(3)
    expect(warnings(lines)).toEqual([])
  })

  test('are told apart by eventKey or the verifier, and nothing is said', async () => {
    for (const options of [{ eventKey: () => 'x' }, { verify: vouching }]) {
      const { send, lines } = receiving(bunny(), options)
      await send(finished)
      expect(warnings(lines)).toEqual([])
    }
  })

  test('cannot have another identity', () => {
    expect(() => bunny({ identity: 'id' })).toThrow(/identity must be one of body, delivery/)
  })
})
