import { describe, expectTypeOf, test } from 'vitest'
import * as zod from 'zod'
import * as z from 'zod/mini'
import { expressHandler } from '../../adapters/express.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import {
  createReceiver,
  defineSender,
  type EventOf,
  type EventType,
  type HandlerContext,
  type MediaEvent,
  type MediaService,
  type Overdue,
  type Receiver,
  type Sender,
  type SenderEvent,
  type StandardSchema,
  type TypeOf,
  type UnknownEventType,
  unverified,
} from '../../src/index.ts'
import { dashboard } from '../../src/operate/dashboard/index.ts'
import { type Client, registerWebhook } from '../../src/service/client/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'

interface Ready {
  id: string
  duration?: number | undefined
}
interface Errored {
  id: string
  errors: { messages: string[] }
}
type ReadyEvent = SenderEvent<'video.asset.ready', Ready>
type ErroredEvent = SenderEvent<'video.asset.errored', Errored>

const mux = defineSender({
  name: 'mux',
  events: {
    'video.asset.ready': zod.object({ id: zod.string(), duration: zod.number().optional() }),
    'video.asset.errored': z.object({ id: z.string(), errors: z.object({ messages: z.array(z.string()) }) }),
  },
  read: ({ type, id, created_at, data }) => ({
    type,
    mediaId: data.object?.id ?? data.id,
    id,
    emittedAt: created_at,
    data,
  }),
})
const receiver = createReceiver({ sender: mux, verify: unverified() })

describe('a sender', () => {
  test('may read lists, forms and nothing, and knows its data all the same', () => {
    const listed = defineSender({
      name: 'listed',
      events: { done: z.object({ n: z.number() }) },
      read: (list: { film: string }[], _, { text }) =>
        text === '[]' ? undefined : list.map((data) => ({ type: 'done', mediaId: data.film, data })),
    })
    const form = defineSender({
      name: 'form',
      body: 'form',
      contentTypes: ['application/x-www-form-urlencoded'],
      gzip: true,
      identity: 'delivery',
      events: { done: z.object({ n: z.string() }) },
      read: ({ film, ...data }) => ({ type: 'done', mediaId: film, data }),
    })
    createReceiver({ sender: listed, verify: unverified() }).on('done', ({ data }) => {
      expectTypeOf(data).toEqualTypeOf<{ n: number }>()
    })
    createReceiver({ sender: form, verify: unverified() }).on('done', ({ data }) => {
      expectTypeOf(data).toEqualTypeOf<{ n: string }>()
    })
    const events = { done: z.object({}) }
    // @ts-expect-error an event of a list has data of its own
    defineSender({ name: 'x', events, read: () => [{ type: 'done', mediaId: 'm' }] })
    // @ts-expect-error no format of bodies
    defineSender({ name: 'x', events, body: 'xml', read: () => undefined })
    // @ts-expect-error content types are a list
    defineSender({ name: 'x', events, contentTypes: 'text/plain', read: () => undefined })
    defineSender({ name: 'x', events, read: () => undefined, challenge: async ({ query }) => query.get('challenge') })
    // @ts-expect-error a number is no answer to a handshake
    defineSender({ name: 'x', events, read: () => undefined, challenge: () => 7 })
    // @ts-expect-error no identity
    defineSender({ name: 'x', events, identity: 'id', read: () => undefined })
    // @ts-expect-error read cannot be async
    defineSender({ name: 'x', events, read: async () => undefined })
  })

  test('knows the types of its data, by its schemas', () => {
    expectTypeOf(mux).toEqualTypeOf<Sender<{ 'video.asset.ready': Ready; 'video.asset.errored': Errored }>>()
    expectTypeOf<TypeOf<typeof mux>>().toEqualTypeOf<'video.asset.ready' | 'video.asset.errored'>()
    expectTypeOf<EventOf<'video.asset.ready', typeof mux>>().toEqualTypeOf<ReadyEvent>()
  })

  test('takes any Standard Schema, and the type that it makes', () => {
    const date: StandardSchema<Date> = {
      '~standard': { version: 1, vendor: 'own', validate: () => ({ value: new Date() }) },
    }
    const own = defineSender({ name: 'own', events: { a: date }, read: () => ({ type: 'a', mediaId: 'm' }) })
    expectTypeOf<EventOf<'a', typeof own>['data']>().toEqualTypeOf<Date>()
  })

  test('gets the headers, which may be absent', () => {
    defineSender({
      name: 'own',
      events: { a: z.object({}) },
      read: (payload, headers) => {
        expectTypeOf(headers.get('x-event')).toEqualTypeOf<string | null>()
        return { type: headers.get('x-event') ?? 'none', mediaId: payload['id'], id: null, emittedAt: 7 }
      },
    })
  })

  test('does not compile without what every event has', () => {
    const events = { a: z.object({}) }
    // @ts-expect-error an event has a media id
    defineSender({ name: 'own', events, read: ({ type }) => ({ type }) })
    // @ts-expect-error read is synchronous
    defineSender({ name: 'own', events, read: async ({ type }) => ({ type, mediaId: type }) })
    // @ts-expect-error a schema is a Standard Schema
    defineSender({ name: 'own', events: { a: (value: unknown) => value }, read: () => ({ type: 'a', mediaId: 'm' }) })
    // @ts-expect-error a sender has a name
    defineSender({ events, read: () => ({ type: 'a', mediaId: 'm' }) })
  })
})

describe('a receiver of a sender', () => {
  test('infers the event of a type, its data and the context', () => {
    receiver.on('video.asset.ready', (event, context) => {
      expectTypeOf(event).toEqualTypeOf<ReadyEvent>()
      expectTypeOf(event.data.duration).toEqualTypeOf<number | undefined>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
    receiver.on(['video.asset.ready', 'video.asset.errored'], (event) => {
      expectTypeOf(event).toEqualTypeOf<ReadyEvent | ErroredEvent>()
      if (event.type === 'video.asset.errored') expectTypeOf(event.data).toEqualTypeOf<Errored>()
    })
    createReceiver({
      sender: mux,
      verify: unverified(),
      handlers: { 'video.asset.ready': (event) => void expectTypeOf(event).toEqualTypeOf<ReadyEvent>() },
      eventKey: (event) => event.key,
    })
  })

  test('gives onAny every event, with unknown data for an unknown type', () => {
    receiver.onAny((event) => {
      expectTypeOf(event).toEqualTypeOf<ReadyEvent | ErroredEvent | SenderEvent<UnknownEventType, unknown>>()
      if (event.type === 'video.asset.ready') expectTypeOf(event.data).toEqualTypeOf<Ready>()
    })
  })

  test('expects its types, and looks up its events', () => {
    receiver.expect('video.asset.ready', { then: 'video.asset.errored', within: '2 h' }, async (overdue) => {
      expectTypeOf(overdue).toEqualTypeOf<Overdue<'video.asset.ready', typeof mux>>()
      expectTypeOf(overdue.event).toEqualTypeOf<ReadyEvent>()
      await overdue.accept({ type: 'video.asset.errored', data: { id: 'a' } })
    })
    void receiver.accept({ type: 'video.asset.ready', mediaId: 'm', id: 'e', emittedAt: new Date(), data: {} })
    // @ts-expect-error a look-up of this sender has data
    void receiver.accept({ type: 'video.asset.ready', mediaId: 'm' })
    // @ts-expect-error qualities are the media service's
    void receiver.accept({ type: 'video.asset.ready', mediaId: 'm', data: {}, qualities: [] })
  })

  test('adds what the inbox adds to the context', () => {
    const inbox = postgresInbox({ connection: 'postgres://app@db.example/app' })
    createReceiver({ sender: mux, verify: unverified(), inbox }).on('video.asset.ready', async (_, context) => {
      await context.transaction((client) => client.query('SELECT 1'))
    })
  })

  test('does not compile with types and data that it does not have', () => {
    // @ts-expect-error misspelt
    receiver.on('video.asset.redy', () => {})
    // @ts-expect-error a type of the media service
    receiver.on('encoding.finished', () => {})
    // @ts-expect-error data has no such field
    receiver.on('video.asset.ready', (event) => event.data.durations)
    // @ts-expect-error qualities are the media service's
    receiver.on('video.asset.ready', (event) => event.qualities)
    // @ts-expect-error an event of this type must not end it
    receiver.expect('video.asset.ready', { then: 'encoding.finished', within: '2 h' }, () => {})
    // @ts-expect-error not a type of this sender
    createReceiver({ sender: mux, verify: unverified(), handlers: { 'encoding.finished': () => {} } })
    // @ts-expect-error not made by defineSender
    createReceiver({ sender: { name: 'mux' }, verify: unverified() })
  })

  test('works with adapters, the dashboard and deliver, and not with the client of the media service', () => {
    expressHandler(receiver)
    dashboard(receiver, { access: 'public' } as never)
    void deliver(receiver, { type: 'video.asset.ready' })
    void deliver(receiver, '{}')
    // @ts-expect-error the webhooks of the media service have flags for its own types
    void registerWebhook({} as Client, receiver, { url: 'https://example.com' })
  })
})

describe('a receiver without a sender', () => {
  test('is one of the media service', () => {
    const plain = createReceiver({ verify: unverified() })
    expectTypeOf(plain).toEqualTypeOf<Receiver>()
    expectTypeOf<Receiver>().toEqualTypeOf<Receiver<unknown, MediaService>>()
    expectTypeOf<TypeOf<MediaService>>().toEqualTypeOf<EventType>()
    plain.onAny((event) => void expectTypeOf(event).toEqualTypeOf<MediaEvent>())
    void deliver(plain, samplePayload('encoding.finished'))
    // @ts-expect-error not a payload of the media service
    void deliver(plain, { type: 'video.asset.ready' })
  })
})
