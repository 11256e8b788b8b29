import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { redisStore } from '../../src/idempotency/redis.ts'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { queueInbox } from '../../src/inbox/queue.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  basicAuth,
  createReceiver,
  defineInbox,
  type EventType,
  headerToken,
  hmacSignature,
  type InboxDefinition,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
} from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { untyped } from '../support/untyped.ts'
import { answeringInbox, receiverWith, smallInbox } from './listening-receiver.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ name: 'WebhookError', code: 'invalid_option', message: expect.stringMatching(message) })

const inbox: InboxDefinition = { ...answeringInbox(() => 'accepted'), handlesNow: true }

const secret = 'a-secret'

const build = (options: Partial<Record<keyof ReceiverOptions, unknown>>) => () =>
  createReceiver({ verify: unverified(), inbox, ...options } as ReceiverOptions)

test.each<[string, () => unknown]>([
  ['createReceiver', build(untyped({ inbocks: memoryInbox() }))],
  ['retry', build({ retry: { attemps: 1 } })],
  ['hooks', build({ hooks: { deliveries() {} } })],
  ['hooks', () => receiverWith().observe(untyped({ deliveries() {} }))],
  // Only an inbox observes the runs that failed apart.
  ['hooks', build({ hooks: { failed() {} } })],
  ['hooks', () => receiverWith().observe(untyped({ failed() {} }))],
  ['on', () => receiverWith().on('encoding.failed', () => {}, untyped({ names: 'publish' }))],
  ['on', () => receiverWith().onAny(() => {}, untyped({ test: true }))],
  ['urlToken', () => urlToken(untyped({ secret, param: 'key' }))],
  ['headerToken', () => headerToken(untyped({ secret, header: 'x-token', scheme: 'Bearer' }))],
  ['basicAuth', () => basicAuth(untyped({ username: 'media', password: secret, user: 'media' }))],
  ['hmacSignature', () => hmacSignature(untyped({ secret, header: 'x-signature', tolerance: 60 }))],
  [
    'hmacSignature: timestamp',
    () => hmacSignature(untyped({ secret, header: 'x-s', timestamp: { header: 'x-t', tolerance: 60 } })),
  ],
  ['standardWebhooks', () => standardWebhooks(untyped({ secret: 'whsec_MfKQ9r8G', tolerance: 60 }))],
  ['timestampedSignature', () => timestampedSignature(untyped({ secret, header: 'x-s', tolerance: 60 }))],
  ['memoryInbox', () => memoryInbox(untyped({ concurency: 3 }))],
  ['lruStore', () => lruStore(untyped({ maximum: 3 }))],
  ['sqliteInbox', () => sqliteInbox(untyped({ path: 'a.db', ttl: 3 }))],
  ['bullmqInbox', () => bullmqInbox(untyped({ connection: 'redis://127.0.0.1', ttl: 3 }))],
  ['redisStore', () => redisStore(untyped({ client: {}, ttl: 3 }))],
])('%s throws for an option that does not exist', (owner, make) => {
  expect(make).toThrow(invalid(new RegExp(`^${owner}: there is no option`)))
})

describe('createReceiver does not take', () => {
  test.each([undefined, null, 'urlToken', () => true, {}, { verify: 'yes' }])('%o as its verifier', (verify) => {
    expect(build({ verify })).toThrow(invalid(/choose how deliveries are verified.*unverified\(\)/))
  })

  test('a verifier that does not say whether it needs the bytes', () => {
    expect(build({ verify: { name: 'mine', verify: () => ({ verified: true }) } })).toThrow(invalid(/needsBytes/))
  })

  test.each([{}, { warn() {} }, 'pino', null])('%o as its logger', (logger) => {
    expect(build({ logger })).toThrow(
      invalid(/logger must be a logger, which has the methods debug, info, warn, error/),
    )
  })

  test.each([{}, 'memory', null])('%o as its inbox', (inbox) => {
    expect(build({ inbox })).toThrow(invalid(/inbox must be a definition/))
  })

  test.each([memoryInbox, sqliteInbox, bullmqInbox])('%o without its parentheses', (inbox) => {
    expect(build({ inbox })).toThrow(invalid(/memoryInbox\(\) \(are its parentheses missing\?\)/))
  })

  test('an open inbox in place of its definition', () => {
    const { inbox } = receiverWith()
    expect(build({ inbox })).toThrow(invalid(/inbox must be a definition/))
  })

  test('a call without options', () => {
    expect(() => createReceiver(untyped(undefined))).toThrow(invalid(/choose how deliveries are verified/))
    expect(() => createReceiver(untyped({}))).toThrow(invalid(/choose how deliveries are verified/))
  })

  describe.each(['maxBodyBytes', 'ackTimeoutMs', 'handlerTimeoutMs'] as const)('as %s', (name) => {
    test.each([Number.NaN, 0, -1, 0.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 31, '1000', null, 10n])(
      '%o',
      (value) => {
        const ack = name === 'ackTimeoutMs' ? 'handled' : 'accepted'
        expect(build({ ack, [name]: value })).toThrow(
          invalid(new RegExp(`createReceiver: ${name} must be a whole number`)),
        )
      },
    )
  })

  describe.each(['attempts', 'baseMs', 'maxMs'])('as retry.%s', (name) => {
    test.each([Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY, '5'])('%o', (value) => {
      expect(build({ retry: { [name]: value } })).toThrow(invalid(new RegExp(`retry: ${name} must be a whole number`)))
    })
  })

  test.each(['never', 'Handled', '', null, true])('%o as ack', (ack) => {
    expect(build({ ack })).toThrow(invalid(/^createReceiver: ack must be one of accepted, handled/))
  })

  test.each([3, 'never', null, () => 3])('%o as retry', (retry) => {
    expect(build({ retry })).toThrow(invalid(/^retry: the options must be an object/))
  })

  test('an option that would have no effect', () => {
    expect(build({ ack: 'handled', retry: {} })).toThrow(invalid(/retry has no effect with ack 'handled'/))
    expect(build({ ackTimeoutMs: 1_000 })).toThrow(invalid(/ackTimeoutMs has no effect with ack 'accepted'/))
  })

  test.each([{ header: '' }, { header: 'x id' }, {}, 'x-event-id', null, 7])('%o as eventKey', (eventKey) => {
    expect(build({ eventKey })).toThrow(invalid(/^createReceiver: eventKey/))
  })

  test('a handler that is not a function', () => {
    expect(build({ handlers: { 'encoding.finished': 'publish' } })).toThrow(invalid(/the handler must be a function/))
    expect(build({ handlers: { 'encoding.finished': null } })).toThrow(invalid(/the handler must be a function/))
  })

  test.each([null, 'publish', () => {}])('%o as handlers', (handlers) => {
    expect(build({ handlers })).toThrow(invalid(/^createReceiver: handlers must be an object/))
  })

  class Handlers {
    own = () => {}
    'encoding.finished'() {}
  }
  const inherited = Object.create({ 'encoding.finished': () => {} })
  test.each<[string, unknown]>([
    ['a Map', new Map([['encoding.finished', () => {}]])],
    ['the instance of a class', new Handlers()],
    ['an object that inherits them', inherited],
    ['a list', [() => {}]],
    ['a promise', Promise.resolve({})],
  ])('handlers in %s, which would all be overlooked', (_, handlers) => {
    expect(build({ handlers })).toThrow(invalid(/^createReceiver: handlers must be an object such as/))
  })

  test.each<[string, unknown]>([
    ['a Map', new Map([['delivery', () => {}]])],
    [
      'an instance without any',
      new (class {
        deliveries() {}
      })(),
    ],
    ['a promise', Promise.resolve({})],
  ])('hooks in %s', (_, hooks) => {
    expect(build({ hooks })).toThrow(invalid(/^hooks: /))
  })

  test.each<[string, unknown]>([
    ['a Map', new Map([['concurrency', 1]])],
    ['a promise', Promise.resolve({ concurrency: 1 })],
  ])('options in %s', (_, options) => {
    expect(() => memoryInbox(untyped(options))).toThrow(invalid(/^memoryInbox: the options must be an object/))
  })

  test('telemetry without the methods of openTelemetry', () => {
    expect(build({ telemetry: { startDelivery() {} } })).toThrow(invalid(/telemetry must be openTelemetry\(\)/))
  })

  test.each(['encoding.finish', 'encoding_finished', 'Encoding.Finished', 'encodng.finished'])(
    'the type %s, and says which is near',
    (type) => {
      const near = invalid(/did you mean 'encoding.finished'\?/)
      const receiver = receiverWith()
      expect(build({ handlers: { [type]: () => {} } })).toThrow(near)
      expect(() => receiver.on(untyped(type), () => {})).toThrow(near)
      expect(() => receiver.off(untyped(type), () => {})).toThrow(near)
      expect(() => receiver.expect(untyped(type), { then: 'encoding.failed', within: '1 h' }, () => {})).toThrow(near)
      expect(() => receiver.expect('file.received', { then: untyped(type), within: '1 h' }, () => {})).toThrow(near)
    },
  )

  test.each(['encoding_finished', 'video.deleted', 'constructor', ''])('handlers of the unknown type %o', (type) => {
    expect(build({ handlers: { [type]: () => {} } })).toThrow(invalid(new RegExp(`unknown event type ${type};.*onAny`)))
  })
})

describe('on does not take', () => {
  const receiver = receiverWith()

  test.each(['encoding_finished', 'video.deleted', '__proto__', '', undefined])('the unknown type %o', (type) => {
    expect(() => receiver.on(type as EventType, () => {})).toThrow(invalid(/unknown event type.*onAny/))
    expect(() => receiver.on(['encoding.finished', type as EventType], () => {})).toThrow(invalid(/unknown event type/))
  })

  test.each(['', null, 7])('the name %o', (name) => {
    expect(() => receiver.on('encoding.failed', () => {}, untyped({ name }))).toThrow(invalid(/^on: name must be/))
  })

  test('an empty list of types, or a handler that is not a function', () => {
    expect(() => receiver.on([], () => {})).toThrow(invalid(/at least one event type/))
    for (const handler of [undefined, null, 'publish', {}].map(untyped)) {
      expect(() => receiver.on('encoding.finished', handler)).toThrow(invalid(/^on: the handler must be a function/))
      expect(() => receiver.onAny(handler)).toThrow(invalid(/the handler must be a function/))
      expect(() => receiver.onError(handler)).toThrow(invalid(/onError: the handler must be a function/))
    }
  })

  test('a name that is taken, and registers nothing when it throws', async () => {
    const receiver = receiverWith().onAny(() => {}, { name: 'publish' })
    expect(() => receiver.on('encoding.finished', () => {}, { name: 'publish' })).toThrow(invalid(/already registered/))
    const other = receiverWith()
    expect(() => other.on(['encoding.finished', 'nope' as EventType], () => {})).toThrow()
    expect((await deliver(other, samplePayload('encoding.finished'))).outcome).toBe('ignored')
  })
})

describe('a receiver', () => {
  test('takes the largest and smallest values of its options', async () => {
    const payload = samplePayload('encoding.finished')
    const { length } = JSON.stringify(payload)
    const max = 2_147_483_647
    const receiver = receiverWith({
      ack: 'handled',
      maxBodyBytes: length,
      ackTimeoutMs: max,
      handlerTimeoutMs: max,
    }).onAny(() => {})
    expect((await deliver(receiver, payload)).outcome).toBe('handled')
    expect((await deliver(receiverWith({ maxBodyBytes: length - 1 }), payload)).outcome).toBe('too_large')
  })

  test('has its inbox to itself', async () => {
    const inbox = smallInbox()
    receiverWith({ inbox })
    expect(() => receiverWith({ inbox })).toThrow(invalid(/memoryInbox: an inbox serves one receiver/))
  })

  test('is returned by its methods, which can be chained', () => {
    const receiver = receiverWith()
    const handler = () => {}
    expect(receiver.on('encoding.finished', handler).onAny(handler).off(handler).onError(handler)).toBe(receiver)
  })
})

test.each([
  ['bullmqInbox', { inbox: bullmqInbox({ connection: 'redis://127.0.0.1' }) }],
  ['queueInbox', { inbox: queueInbox({ send: async () => {}, store: lruStore() }) }],
  ['memoryInbox', { inbox: memoryInbox({ store: redisStore({ client: untyped({ eval() {} }) }) }) }],
])("createReceiver refuses order: 'strict' with %s, which can't keep it", (name, { inbox }) => {
  expect(build({ inbox, order: 'strict' })).toThrow(invalid(new RegExp(`^createReceiver: ${name} can't keep`)))
})

test("createReceiver refuses order: 'strict' with ack: 'handled', and any other word", () => {
  expect(build({ order: 'strict', ack: 'handled' })).toThrow(invalid(/^createReceiver: order 'strict' has no effect/))
  expect(build({ order: 'by time' })).toThrow(invalid(/^createReceiver: order/))
})

test('handlers may have no prototype, come from another realm, or be left out one by one', async () => {
  const handled: string[] = []
  const named = (name: string) => () => void handled.push(name)
  const bare = Object.assign(Object.create(null), { 'encoding.finished': named('bare'), 'encoding.failed': undefined })
  const foreign = runInNewContext('({})')
  foreign['encoding.finished'] = named('foreign')
  for (const handlers of [bare, foreign]) {
    const receiver = createReceiver({ verify: unverified(), handlers })
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    expect(receiver.handles('encoding.failed')).toBe(false)
  }
  expect(handled).toEqual(['bare', 'foreign'])
})

test('an inbox may be the instance of a class', () => {
  class Inbox {
    get name() {
      return 'classInbox'
    }
    get handlesNow() {
      return true
    }
    open = inbox.open
  }
  const { name, handlesNow } = defineInbox(new Inbox())
  expect({ name, handlesNow }).toEqual({ name: 'classInbox', handlesNow: true })
})
