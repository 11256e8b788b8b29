import { describe, expect, test } from 'vitest'
import { redisStore } from '../../src/idempotency/redis.ts'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  createReceiver,
  type EventType,
  type InboxDefinition,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
  unverified,
} from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { answeringInbox, receiverWith, smallInbox } from './fixture.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ name: 'WebhookError', code: 'invalid_option', message: expect.stringMatching(message) })

const inbox: InboxDefinition = { ...answeringInbox(() => 'accepted'), handlesNow: true }

const build = (options: Partial<Record<keyof ReceiverOptions, unknown>>) => () =>
  createReceiver({ verify: unverified(), inbox, ...options } as ReceiverOptions)

test.each<[string, () => unknown]>([
  ['createReceiver', build({ inbocks: memoryInbox() } as never)],
  ['retry', build({ retry: { attemps: 1 } })],
  ['memoryInbox', () => memoryInbox({ concurency: 3 } as never)],
  ['lruStore', () => lruStore({ maximum: 3 } as never)],
  ['sqliteInbox', () => sqliteInbox({ path: 'a.db', ttl: 3 } as never)],
  ['bullmqInbox', () => bullmqInbox({ connection: 'redis://127.0.0.1', ttl: 3 } as never)],
  ['redisStore', () => redisStore({ client: {}, ttl: 3 } as never)],
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
    expect(build({ logger })).toThrow(invalid(/a logger has the methods debug, info, warn, error/))
  })

  test.each([{}, 'memory', null])('%o as its inbox', (inbox) => {
    expect(build({ inbox })).toThrow(invalid(/inbox has to be a definition/))
  })

  test.each([memoryInbox, sqliteInbox, bullmqInbox])('%o without its parentheses', (inbox) => {
    expect(build({ inbox })).toThrow(invalid(/memoryInbox\(\) \(are its parentheses missing\?\)/))
  })

  test('an open inbox in place of its definition', () => {
    const { inbox } = receiverWith()
    expect(build({ inbox })).toThrow(invalid(/inbox has to be a definition/))
  })

  test('a call without options', () => {
    expect(() => createReceiver(undefined as never)).toThrow(invalid(/choose how deliveries are verified/))
    expect(() => createReceiver({} as never)).toThrow(invalid(/choose how deliveries are verified/))
  })

  describe.each(['maxBodyBytes', 'ackTimeoutMs', 'handlerTimeoutMs'] as const)('as %s', (name) => {
    test.each([Number.NaN, 0, -1, 0.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 31, '1000', null, 10n])(
      '%o',
      (value) => {
        const ack = name === 'ackTimeoutMs' ? 'handled' : 'accepted'
        expect(build({ ack, [name]: value })).toThrow(
          invalid(new RegExp(`createReceiver: ${name} has to be a whole number`)),
        )
      },
    )
  })

  describe.each(['attempts', 'baseMs', 'maxMs'])('as retry.%s', (name) => {
    test.each([Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY, '5'])('%o', (value) => {
      expect(build({ retry: { [name]: value } })).toThrow(
        invalid(new RegExp(`retry: ${name} has to be a whole number`)),
      )
    })
  })

  test.each(['never', 'Handled', '', null, true])('%o as ack', (ack) => {
    expect(build({ ack })).toThrow(invalid(/^createReceiver: ack has to be one of accepted, handled/))
  })

  test.each([3, 'never', null, () => 3])('%o as retry', (retry) => {
    expect(build({ retry })).toThrow(invalid(/retry is an object/))
  })

  test('an option that would have no effect', () => {
    expect(build({ ack: 'handled', retry: {} })).toThrow(invalid(/retry has no effect with ack 'handled'/))
    expect(build({ ackTimeoutMs: 1_000 })).toThrow(invalid(/ackTimeoutMs has no effect with ack 'accepted'/))
  })

  test.each([{ header: '' }, { header: 'x id' }, {}, 'x-event-id', null, 7])('%o as eventKey', (eventKey) => {
    expect(build({ eventKey })).toThrow(invalid(/^createReceiver: eventKey/))
  })

  test('a handler that is not a function', () => {
    expect(build({ handlers: { 'encoding.finished': 'publish' } })).toThrow(invalid(/a handler is a function/))
    expect(build({ handlers: { 'encoding.finished': null } })).toThrow(invalid(/a handler is a function/))
  })

  test.each(['encoding_finished', 'video.deleted', 'constructor', ''])('handlers of the unknown type %o', (type) => {
    expect(build({ handlers: { [type]: () => {} } })).toThrow(invalid(new RegExp(`unknown event type ${type};.*onAny`)))
  })
})

describe('on does not take', () => {
  const receiver = receiverWith()

  test.each(['encoding_finished', 'video.deleted', '__proto__', ''])('the unknown type %o', (type) => {
    expect(() => receiver.on(type as EventType, () => {})).toThrow(invalid(/unknown event type.*onAny/))
    expect(() => receiver.on(['encoding.finished', type as EventType], () => {})).toThrow(invalid(/unknown event type/))
  })

  test('an empty list of types, or a handler that is not a function', () => {
    expect(() => receiver.on([], () => {})).toThrow(invalid(/at least one event type/))
    for (const handler of [undefined, null, 'publish', {}] as never[]) {
      expect(() => receiver.on('encoding.finished', handler)).toThrow(invalid(/^on: a handler is a function/))
      expect(() => receiver.onAny(handler)).toThrow(invalid(/a handler is a function/))
      expect(() => receiver.onError(handler)).toThrow(invalid(/onError: a handler is a function/))
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
