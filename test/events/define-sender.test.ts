import { describe, expect, test } from 'vitest'
import * as zod from 'zod'
import * as z from 'zod/mini'
import { defineSender, type StandardSchema, WebhookError } from '../../src/index.ts'
import { mux, ready, receiving } from './senders.ts'

const untyped = (value: unknown) => value as never
const any: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
const reading = { type: 'a', mediaId: 'm1' }

/** Makes a sender of one type. */
const senderOf = (
  read: (payload: Record<string, never>, headers: { get(name: string): string | null }) => unknown,
  schema = any,
) => defineSender({ name: 'own', events: { a: schema }, read: read as never })

describe('an event of a sender', () => {
  test('has the fields that read returns, and its data as the schema makes it', async () => {
    const { handled, send } = receiving(mux)
    expect(await send(ready())).toMatchObject({ status: 200, outcome: 'accepted' })
    expect(handled).toEqual([
      expect.objectContaining({
        type: 'video.asset.ready',
        key: 'event-1',
        source: 'delivery',
        emittedAt: new Date('2026-03-01T12:00:00.123Z'),
        mediaId: 'asset-1',
        principal: undefined,
        test: false,
        issues: [],
        data: { id: 'asset-1', duration: 7 },
        payload: ready(),
      }),
    ])
  })

  test('is a duplicate if another one had its id', async () => {
    const { handled, send } = receiving(mux)
    await send(ready())
    expect(await send(ready({ attempts: [{ webhook_id: 1 }] }))).toMatchObject({ outcome: 'duplicate' })
    expect(await send(ready({ id: 'event-2' }))).toMatchObject({ outcome: 'accepted' })
    expect(handled).toHaveLength(2)
  })

  test('has a key of its bytes without an id', async () => {
    const { send } = receiving(senderOf(() => reading))
    expect(await send('{"n":1}')).toMatchObject({ outcome: 'accepted' })
    expect(await send('{"n":1}')).toMatchObject({ outcome: 'duplicate' })
    expect(await send('{"n":1 }')).toMatchObject({ outcome: 'accepted' })
  })

  test('has a key of its type as well, which may come from a header', async () => {
    const { send } = receiving(senderOf((_, headers) => ({ ...reading, type: headers.get('x-type') })))
    for (const type of ['push', 'pull'])
      expect(await send({}, { 'x-type': type })).toMatchObject({ outcome: 'accepted' })
    expect(await send({}, { 'x-type': 'push' })).toMatchObject({ outcome: 'duplicate' })
  })

  test('reaches only onAny if its type has no schema, with its data as sent', async () => {
    const { receiver, handled, send } = receiving(mux)
    expect((await send(ready({ type: 'video.asset.deleted' }))).outcome).toBe('accepted')
    expect(handled[0]).toMatchObject({ type: 'video.asset.deleted', data: { id: 'asset-1', duration: 7 } })
    expect(() => receiver.on(untyped('video.asset.deleted'), () => {})).toThrow(/unknown event type/)
    expect(() => receiver.on(untyped('encoding.finished'), () => {})).toThrow(/unknown event type/)
  })

  test('has its payload as data if read returns none', async () => {
    const { handled, send } = receiving(senderOf(() => reading))
    await send({ uid: 'u' })
    expect(handled[0].data).toEqual({ uid: 'u' })
  })

  test('has ids that were numbers as texts, with all their digits', async () => {
    const { handled, send } = receiving(senderOf(({ id }) => ({ type: 'a', mediaId: id, id })))
    await send({ id: 7 })
    expect(handled[0]).toMatchObject({ mediaId: '7', key: '7' })
    expect(await send('{"id":9007199254740993}')).toMatchObject({ status: 200 })
    expect(handled[1]).toMatchObject({ mediaId: '9007199254740993', key: '9007199254740993' })
  })

  test.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    [1_772_366_400, '2026-03-01T12:00:00.000Z'],
    [1_772_366_400_123, '2026-03-01T12:00:00.123Z'],
    [new Date('2026-03-01T12:00:00.5Z'), '2026-03-01T12:00:00.500Z'],
  ])('was emitted at %j', async (emittedAt, time) => {
    const { handled, send } = receiving(senderOf(() => ({ ...reading, emittedAt })))
    await send({})
    expect(handled[0].emittedAt.toISOString()).toBe(time)
    expect(handled[0].issues).toEqual([])
  })

  test.each(['yesterday', '2026-03-01 12:00', 7, new Date('x'), {}])(
    'names a time that cannot be read: %j',
    async (emittedAt) => {
      const { handled, send } = receiving(senderOf(() => ({ ...reading, emittedAt })))
      expect(await send({})).toMatchObject({ status: 200 })
      expect(handled[0]).toMatchObject({ emittedAt: undefined, issues: ['emittedAt'] })
    },
  )
})

describe('the data of an event', () => {
  test('may be null, which its schema checks at receipt and before each handler', async () => {
    const { handled, send } = receiving(senderOf(() => ({ ...reading, data: null }), z.nullable(z.string())))
    expect(await send({})).toMatchObject({ outcome: 'accepted' })
    expect(handled[0].data).toBeNull()
    const strict = receiving(senderOf(() => ({ ...reading, data: null }), z.object({})))
    expect(await strict.send({})).toMatchObject({ outcome: 'malformed' })
  })

  const dated = senderOf(
    (payload) => ({ ...reading, data: payload }),
    z.object({
      at: z.pipe(
        z.string(),
        z.transform((text) => new Date(text)),
      ),
    }),
  )

  test('is transformed by its schema for each handler anew', async () => {
    const { receiver, handled, send } = receiving(dated)
    receiver.onAny((event) => void handled.push(event))
    await send({ at: '2026-03-01T12:00:00Z' })
    expect(handled.map(({ data }) => data.at)).toEqual([
      new Date('2026-03-01T12:00:00Z'),
      new Date('2026-03-01T12:00:00Z'),
    ])
    expect(handled[0].data).not.toBe(handled[1].data)
  })

  test('is transformed once, although its schema writes into its input, as arktype does', async () => {
    const validate = (value: unknown) => {
      const data = value as { n: number }
      data.n += 1
      return { value: data }
    }
    const sender = senderOf(({ data }) => ({ ...reading, data }), {
      '~standard': { version: 1, vendor: 'test', validate },
    })
    const { receiver, handled, send } = receiving(sender)
    receiver.onAny((event) => void handled.push(event))
    await send({ data: { n: 1 } })
    expect(handled.map(({ data }) => data)).toEqual([{ n: 2 }, { n: 2 }])
    expect(handled[0].payload).toEqual({ data: { n: 1 } })
  })

  test('fails the handler, and not half of it runs, once the schema no longer takes it', async () => {
    let isRejecting = false
    const changing: StandardSchema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => (isRejecting ? { issues: [{ message: 'was 7', path: ['duration'] }] } : { value }),
      },
    }
    const sender = senderOf(() => reading, changing)
    const { receiver, handled, deadLetters, send } = receiving(sender, { retry: { attempts: 1 } })
    receiver.onAny(
      () => {
        isRejecting = handled.length === 1
      },
      { name: 'first' },
    )
    receiver.onAny((event) => void handled.push(event), { name: 'second' })
    await send({})
    const [dead] = await deadLetters.list()
    expect(handled).toHaveLength(1)
    expect(dead?.failures).toEqual([
      { handler: 'second', message: expect.stringContaining('field data.duration: does not match its schema') },
    ])
    isRejecting = false
    await deadLetters.replay(dead?.key ?? '')
    await expect.poll(() => handled.length).toBe(2)
  })

  test('is JSON, whatever read makes of it', async () => {
    const { handled, send } = receiving(
      senderOf(() => ({ ...reading, data: { at: new Date(0), none: undefined, list: [1n].length } })),
    )
    await send({})
    expect(handled[0].data).toEqual({ at: '1970-01-01T00:00:00.000Z', list: 1 })
    const { send: sendBig } = receiving(senderOf(() => ({ ...reading, data: 1n })))
    expect(await sendBig({})).toMatchObject({ status: 400 })
  })
})

describe('a delivery that the sender cannot have sent', () => {
  test('is malformed with the path of the first issue, and neither answered nor kept nor logged in the words of the schema', async () => {
    const { deadLetters, handled, lines, send } = receiving(mux)
    const answer = await send(ready({ data: { id: 'asset-1', duration: 'secret' } }))
    expect(answer).toMatchObject({ status: 400, outcome: 'malformed' })
    expect(answer.body).toContain('field data.duration: does not match its schema')
    expect(answer.body).not.toContain('secret')
    expect((await deadLetters.list())[0]?.unreadable?.reason).toBe('field data.duration: does not match its schema')
    expect(JSON.stringify(lines)).not.toContain('secret')
    expect(handled).toEqual([])
  })

  test.each([
    ['read throws', () => JSON.parse('null').at],
    [
      'read throws no error',
      () => {
        throw 'secret'
      },
    ],
    ['read returns null', () => null],
    ['read is async', async () => Promise.reject(new Error('secret'))],
    ['the type is missing', () => ({ mediaId: 'm1' })],
    ['the type is no text', () => ({ type: {}, mediaId: 'm1' })],
    ['the media id is empty', () => ({ type: 'a', mediaId: '' })],
    ['the id is an object', () => ({ ...reading, id: {} })],
  ])('is malformed and kept if %s', async (_, read) => {
    const { deadLetters, send } = receiving(senderOf(read))
    const answer = await send({})
    expect(answer).toMatchObject({ status: 400, outcome: 'malformed' })
    expect(answer.body).not.toContain('secret')
    expect(await deadLetters.list()).toHaveLength(1)
  })

  test('is malformed in the words of read if it throws a WebhookError', async () => {
    const { send } = receiving(
      senderOf(() => {
        throw new WebhookError('malformed', 'field uid: expected a text')
      }),
    )
    expect((await send({})).body).toContain('field uid: expected a text')
  })

  test('is kept if its schema turns out to be async, or throws', async () => {
    let result: unknown
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) =>
          value === undefined ? { value } : typeof result === 'function' ? result() : { value },
      },
    }
    const { deadLetters, send } = receiving(senderOf(() => reading, untyped(schema)))
    result = () => Promise.reject(new Error('no'))
    expect(await send({ n: 1 })).toMatchObject({ status: 400 })
    result = () => {
      throw new Error('no')
    }
    expect(await send({ n: 2 })).toMatchObject({ status: 400 })
    expect((await deadLetters.list()).map(({ unreadable }) => unreadable?.reason).toSorted()).toEqual([
      'field data: its schema failed (no)',
      'field data: its schema failed (the schema is async)',
    ])
  })

  test('is kept with what a function in its schema threw, and is not called async', async () => {
    const throwing = () => {
      throw new TypeError('no such codec')
    }
    for (const schema of [
      zod.object({ n: zod.number().transform(throwing) }),
      z.object({ n: z.number().check(z.refine(throwing)) }),
    ]) {
      const { deadLetters, send } = receiving(senderOf(() => reading, untyped(schema)))
      expect(await send({ n: 1 })).toMatchObject({ status: 400 })
      expect((await deadLetters.list())[0]?.unreadable?.reason).toBe('field data: its schema failed (no such codec)')
    }
  })

  test('is kept if its schema returns nothing', async () => {
    const validate = (value: unknown) => (value === undefined ? { value } : undefined)
    const { deadLetters, send } = receiving(
      senderOf(() => reading, untyped({ '~standard': { version: 1, vendor: 'test', validate } })),
    )
    expect(await send({ n: 1 })).toMatchObject({ status: 400 })
    expect((await deadLetters.list())[0]?.unreadable?.reason).toMatch(/the schema returned no result/)
  })

  test('is malformed if read changes the payload, which is stored as it was sent', async () => {
    const read = (payload: { n: unknown; more: { n: unknown } }) => {
      payload.more.n = Number(payload.more.n)
      return reading
    }
    const { deadLetters, send } = receiving(
      senderOf(untyped(read), untyped(zod.object({ more: zod.object({ n: zod.number() }) }))),
    )
    expect(await send({ more: { n: '7' } })).toMatchObject({ status: 400 })
    expect((await deadLetters.list())[0]?.unreadable?.reason).toMatch(/cannot read the payload .*read.only/)
  })

  test('limits the path, whose keys a sender can make up', async () => {
    const records = senderOf((data) => ({ ...reading, data }), z.record(z.string(), z.number()))
    const { send } = receiving(records)
    expect((await send({ ['k'.repeat(9_000)]: 'x' })).body.length).toBeLessThan(400)
  })
})

describe('read', () => {
  test('sees neither prototypes nor keys that lead to them', async () => {
    const seen: unknown[] = []
    const spying = senderOf((payload) => {
      const { nested } = payload as Record<string, Record<string, unknown>>
      for (const key of ['constructor', 'toString', '__proto__']) seen.push(payload[key], nested?.[key])
      return reading
    })
    const { handled, send } = receiving(spying)
    await send(
      '{"nested":{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"kept":1},"__proto__":{"toString":1}}',
    )
    expect(seen).toEqual(Array(6).fill(undefined))
    expect(handled[0].data).toEqual({ nested: { kept: 1 } })
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })

  test('gets the headers, for a sender that puts type and id there', async () => {
    const github = senderOf((_, headers) => ({ type: 'a', mediaId: 'm', id: headers.get('X-Delivery') }))
    const { handled, send } = receiving(github)
    await send({}, { 'x-delivery': 'd-1' })
    expect(handled[0].key).toBe('d-1')
  })
})

describe('a look-up', () => {
  test('makes the event that the sender would have sent', async () => {
    const { receiver, handled } = receiving(mux)
    const found = {
      type: 'video.asset.ready',
      mediaId: 'asset-1',
      id: 'event-1',
      emittedAt: new Date(0),
      data: { id: 'asset-1' },
    }
    expect(await receiver.accept(untyped(found))).toBe('accepted')
    expect(await receiver.accept(untyped(found))).toBe('duplicate')
    await expect.poll(() => handled.length).toBe(1)
    expect(handled[0]).toMatchObject({
      source: 'lookup',
      key: 'event-1',
      emittedAt: new Date(0),
      data: { id: 'asset-1' },
    })
  })

  test.each<[string, object]>([
    [
      'whose fields stand in another order',
      { data: { more: { b: 2, a: [1] }, id: 'asset-1' }, emittedAt: new Date(0), mediaId: '7' },
    ],
    [
      'whose absent fields are null',
      {
        mediaId: '7',
        id: null,
        principal: null,
        emittedAt: new Date(0),
        data: { id: 'asset-1', more: { a: [1], b: 2, c: undefined } },
      },
    ],
    [
      'whose time is a text, and whose media id a number',
      { mediaId: 7, emittedAt: '1970-01-01T01:00:00+01:00', data: { id: 'asset-1', more: { a: [1.0], b: 2 } } },
    ],
  ])('is the same event as one %s', async (_, other) => {
    const { receiver } = receiving(mux)
    const found = { mediaId: '7', emittedAt: new Date(0), data: { id: 'asset-1', more: { a: [1], b: 2 } } }
    expect(await receiver.accept(untyped({ type: 'video.asset.ready', ...found }))).toBe('accepted')
    expect(await receiver.accept(untyped({ ...other, type: 'video.asset.ready' }))).toBe('duplicate')
  })

  test('is malformed if it is the instance of a class, whose getters are not copied', async () => {
    class Found {
      type = 'video.asset.ready'
      mediaId = 'asset-1'
      data = { id: 'asset-1' }
      get id() {
        return 'event-1'
      }
    }
    await expect(receiving(mux).receiver.accept(untyped(new Found()))).rejects.toMatchObject({ code: 'malformed' })
  })

  test.each([
    [{ type: 'video.asset.redy' }, /type: expected one of video.asset.ready, video.asset.errored/],
    [{ mediaId: undefined }, /field mediaId/],
    [{ data: undefined }, /field data/],
    [{ data: { id: 7 } }, /field data.id/],
    [{ emittedAt: 'yesterday' }, /field emittedAt/],
    [{ principal: 7 }, /field principal/],
    [{ typo: 1 }, /no field typo/],
  ])('is malformed with %j', async (fields, message) => {
    const { receiver } = receiving(mux)
    const found = { type: 'video.asset.ready', mediaId: 'asset-1', data: { id: 'asset-1' }, ...fields }
    await expect(receiver.accept(untyped(found))).rejects.toMatchObject({
      code: 'malformed',
      message: expect.stringMatching(message),
    })
  })
})

describe('an expectation of a sender', () => {
  test('reports the event that began it as handlers get it, and takes what a look-up finds', async () => {
    const { receiver, handled, send } = receiving(mux)
    const overdue: unknown[] = []
    receiver.expect(untyped('video.asset.ready'), { then: untyped('video.asset.errored'), within: 5 }, (report) => {
      overdue.push(report.event)
      return report.accept(untyped({ type: 'video.asset.errored', data: { id: 'asset-1', errors: { messages: [] } } }))
    })
    await send(ready())
    await expect.poll(() => handled.length).toBe(2)
    expect(overdue).toEqual([
      expect.objectContaining({ type: 'video.asset.ready', key: 'event-1', data: { id: 'asset-1', duration: 7 } }),
    ])
    await receiver.close()
  })
})

describe('eventKey', () => {
  test('gets the event as handlers do', async () => {
    const { handled, send } = receiving(mux, {
      eventKey: ({ data }: { data: { duration: number } }) => `k${data.duration}`,
    })
    await send(ready())
    expect(handled[0].key).toBe('k7')
  })
})

describe('a conflict', () => {
  test('is a duplicate whose data differs, whatever else the sender adds', async () => {
    const conflicts: unknown[] = []
    const { send } = receiving(mux, { hooks: { conflict: (report: unknown) => conflicts.push(report) } })
    await send(ready())
    await send(ready({ attempts: [1] }))
    expect(conflicts).toEqual([])
    await send(ready({ data: { id: 'asset-1', duration: 8 } }))
    await expect
      .poll(() => conflicts)
      .toEqual([{ key: 'event-1', type: 'video.asset.ready', mediaId: 'asset-1', fields: ['duration'] }])
  })
})

describe('defineSender', () => {
  const valid = { name: 'own', events: { a: any }, read: () => reading }

  test.each([
    [undefined, /options/],
    [{ ...valid, name: '' }, /name/],
    [{ ...valid, name: 'media-service' }, /default sender/],
    [{ ...valid, events: {} }, /at least one event type/],
    [{ ...valid, events: { a: {} } }, /events: a: its schema must be a Standard Schema/],
    [{ ...valid, events: { a: () => true } }, /Standard Schema/],
    [{ ...valid, read: undefined }, /read/],
    [{ ...valid, typo: 1 }, /no option typo/],
  ])('refuses %j', (definition, message) => {
    expect(() => defineSender(untyped(definition))).toThrow(message)
  })

  test.each<[string, unknown]>([
    ['a promise', { '~standard': { version: 1, vendor: 'test', validate: () => Promise.reject(new Error('no')) } }],
    ['valibot, which says so', { async: true, '~standard': any['~standard'] }],
    ['a refinement of zod', zod.object({ id: zod.string().refine(async () => true) })],
    ['a refinement of zod, of the whole', zod.object({ id: zod.string() }).refine(async () => true)],
    [
      'a refinement of zod/mini, deep inside',
      z.object({ list: z.array(z.object({ id: z.string().check(z.refine(async () => true)) })) }),
    ],
    ['a transform of zod', zod.object({ id: zod.string().transform(async (id) => id) })],
  ])('refuses an async schema: %s', (_, schema) => {
    expect(() => defineSender(untyped({ ...valid, events: { a: schema } }))).toThrow(/schema must not be async/)
  })

  test('takes schemas of zod, with transforms, unions, lazy parts and refinements', () => {
    const node: zod.ZodType = zod.lazy(() => zod.object({ next: node.optional() }))
    const schema = zod
      .object({
        id: zod
          .string()
          .refine((id) => id !== '')
          .transform(Number),
        node,
      })
      .or(zod.string())
    expect(defineSender({ ...valid, events: { a: schema } }).types).toEqual(['a'])
  })

  test.each<[string, unknown]>([
    ['a transform of zod throws for undefined', zod.any().transform((value) => value.id.length)],
    ['it holds an async function of its own', { ...any, load: async () => {} }],
  ])('takes a schema although %s', (_, schema) => {
    expect(defineSender(untyped({ ...valid, events: { a: schema } })).types).toEqual(['a'])
  })

  test.each<[string, unknown]>([
    ['a Map', new Map([['a', any]])],
    [
      'the instance of a class',
      new (class {
        a = any
      })(),
    ],
  ])('refuses events in %s', (_, events) => {
    expect(() => defineSender(untyped({ ...valid, events }))).toThrow(/events must be an object such as/)
  })

  test('may be the instance of a class', async () => {
    class Definition {
      name = 'own'
      events = { a: any }
      readonly #type = 'a'
      read(payload: { id: string }) {
        return { type: this.#type, mediaId: payload.id }
      }
    }
    const { send } = receiving(defineSender(untyped(new Definition())))
    expect(await send({ id: 'm' })).toMatchObject({ status: 200 })
  })

  test('takes a schema that throws for what is no object', () => {
    const validate = (value: unknown) => ({ value: (value as { id: string }).id.length })
    expect(() =>
      defineSender({ ...valid, events: { a: { '~standard': { version: 1, vendor: 'test', validate } } } }),
    ).not.toThrow()
  })

  test('is what createReceiver takes as a sender', () => {
    expect(() => receiving({ name: 'mux' })).toThrow(/sender must be what defineSender returns/)
    expect(receiving(mux).receiver.sender).toMatchObject({
      name: 'mux',
      types: ['video.asset.ready', 'video.asset.errored'],
    })
  })
})
