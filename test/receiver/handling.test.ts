import { describe, expect, test, vi } from 'vitest'
import { createReceiver, eventTypes, type MediaEvent, unverified, WebhookError } from '../../src/index.ts'
import { deliver, makeDelivery, samplePayload } from '../../src/testing/index.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'
import { answeringInbox, receiverWith } from './listening-receiver.ts'

const payload = samplePayload('encoding.finished')
const testPayload = samplePayload('encoding.finished', { media_id: '00000000-0000-0000-0000-000000000000' })
const unknown = { ...payload, type: 'video.deleted' }

describe('a receiver', () => {
  test('acknowledges before the handlers finish', async () => {
    const finish = signalled()
    let finished = false
    const receiver = receiverWith().onAny(async () => {
      await finish.promise
      finished = true
    })
    const { outcome, handled } = await deliver(receiver, payload)
    expect([outcome, finished]).toEqual(['accepted', false])
    finish.resolve()
    await handled
    expect(finished).toBe(true)
  })

  test('passes each type to its own handlers', async () => {
    const calls: string[] = []
    const receiver = receiverWith({ handlers: { 'file.received': ({ type }) => void calls.push(`map ${type}`) } })
      .on(['encoding.started', 'encoding.failed'], ({ type }) => void calls.push(`list ${type}`))
      .on('partial.finished', ({ quality }) => void calls.push(`quality ${quality}`))
    for (const type of eventTypes) await (await deliver(receiver, samplePayload(type))).handled
    expect(calls).toEqual(['map file.received', 'list encoding.started', 'quality 360p', 'list encoding.failed'])
  })

  test('ignores a type without a handler, and does not remember the event', async () => {
    const receiver = receiverWith().on('encoding.failed', () => {})
    expect((await deliver(receiver, payload)).outcome).toBe('ignored')
    expect((await deliver(receiver, JSON.stringify(unknown))).outcome).toBe('ignored')
    expect((await deliver(receiver, payload)).outcome).toBe('ignored')
    receiver.on('encoding.finished', () => {})
    expect((await deliver(receiver, payload)).outcome).toBe('accepted')
  })

  test('does not pass ignored events to the inbox', async () => {
    const receiver = receiverWith({ inbox: answeringInbox(() => Promise.reject(new Error('down'))) })
    expect((await deliver(receiver, payload)).outcome).toBe('ignored')
  })

  test('acknowledges a test delivery without a handler or the inbox, unless a handler asks for it', async () => {
    const down = answeringInbox(() => Promise.reject(new Error('down')))
    const receiver = receiverWith({ inbox: down }).on('encoding.finished', () => {})
    expect(await deliver(receiver, testPayload)).toMatchObject({ outcome: 'test', status: 200 })
    receiver.on('encoding.failed', () => {}, { tests: true })
    expect((await deliver(receiver, testPayload)).outcome).toBe('test')
    receiver.on('encoding.finished', () => {}, { tests: true })
    expect((await deliver(receiver, testPayload)).outcome).toBe('unavailable')
    expect((await deliver(receiverWith(), testPayload)).outcome).toBe('ignored')
  })

  test('passes a test delivery to the handlers that ask for it, and to no other', async () => {
    const calls: string[] = []
    const receiver = receiverWith({ handlers: { 'encoding.finished': () => void calls.push('map') } })
      .on('encoding.finished', ({ test }) => void calls.push(`one ${test}`), { tests: true })
      .onAny(() => void calls.push('any'))
      .onAny(({ test }) => void calls.push(`all ${test}`), { tests: true })
    await (await deliver(receiver, testPayload)).handled
    expect(calls).toEqual(['one true', 'all true'])
    await (await deliver(receiver, payload)).handled
    expect(calls.slice(2)).toEqual(['map', 'one false', 'any', 'all false'])
  })

  test('verifies and parses a test delivery like any other', async () => {
    const receiver = receiverWith({
      verify: { name: 'none', needsBytes: false, verify: () => ({ verified: false, reason: 'no' }) },
    })
    expect((await deliver(receiver, testPayload)).outcome).toBe('unauthorized')
    expect((await deliver(receiverWith(), JSON.stringify({ media_id: testPayload.media_id }))).outcome).toBe(
      'malformed',
    )
  })

  test('passes unknown types to onAny', async () => {
    const events: MediaEvent[] = []
    const receiver = receiverWith().onAny((event) => void events.push(event))
    const { outcome, handled } = await deliver(receiver, JSON.stringify(unknown))
    await handled
    expect(outcome).toBe('accepted')
    expect(events).toMatchObject([{ type: 'video.deleted', mediaId: payload.media_id, payload: unknown }])
  })

  test('passes no more events to a handler that was removed', async () => {
    const calls: string[] = []
    const handler = ({ type }: MediaEvent) => void calls.push(type)
    const receiver = receiverWith().on(['encoding.finished', 'encoding.failed'], handler).onAny(handler)
    receiver.off('encoding.finished', handler)
    await (await deliver(receiver, payload)).handled
    await (await deliver(receiver, samplePayload('encoding.failed'))).handled
    receiver.off(handler)
    expect((await deliver(receiver, samplePayload('encoding.started'))).outcome).toBe('ignored')
    expect(calls).toEqual(['encoding.finished', 'encoding.failed', 'encoding.failed'])
  })

  test('passes no more events of several types to a handler that was removed from them', async () => {
    const handler = () => {}
    const types = ['encoding.finished', 'encoding.failed', 'encoding.started'] as const
    const receiver = receiverWith().on(types, handler)
    receiver.off(['encoding.finished', 'encoding.failed'], handler)
    expect(types.map((type) => receiver.handles(type))).toEqual([false, false, true])
  })

  test('answers 500 to an error whose code no delivery can be rejected with', async () => {
    const eventKey = () => {
      throw new WebhookError('timeout', 'the key server is slow')
    }
    const { status, outcome } = await deliver(receiverWith({ eventKey }), payload)
    expect([status, outcome]).toEqual([500, 'internal'])
  })

  test('answers 503 if the inbox cannot be reached, whether it throws or rejects', async () => {
    const failures = [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down')
      },
    ]
    for (const accept of failures) {
      const { status, outcome, headers } = await deliver(
        receiverWith({ inbox: answeringInbox(accept) }).onAny(() => {}),
        payload,
      )
      expect([status, outcome, headers['retry-after']]).toEqual([503, 'unavailable', '3'])
    }
  })

  test('is not created if its inbox cannot be opened', () => {
    const error = new Error('no disk')
    const open = () => {
      throw error
    }
    expect(() => createReceiver({ verify: unverified(), inbox: { name: 'broken', open } })).toThrow(error)
  })
})

describe('waitUntil', () => {
  test('gets one promise, which is pending until an accepted event has been handled', async () => {
    const finish = signalled()
    const ends: Promise<unknown>[] = []
    const receiver = receiverWith().on('encoding.finished', () => finish.promise)
    const send = async (content: string | typeof payload) =>
      (await receiver.receive({ ...(await makeDelivery(content)), waitUntil: (promise) => void ends.push(promise) }))
        .outcome
    expect(await send('no JSON')).toBe('malformed')
    expect(await send(samplePayload('encoding.failed'))).toBe('ignored')
    expect(ends).toHaveLength(0)
    expect(await send(payload)).toBe('accepted')
    expect(await send(payload)).toBe('duplicate')
    expect(ends).toHaveLength(1)
    const state = () => Promise.race([ends[0]?.then(() => 'ended'), new Promise(setImmediate).then(() => 'pending')])
    expect(await state()).toBe('pending')
    finish.resolve()
    await ends[0]
  })

  test('may throw: the event is accepted, and the error is logged', async () => {
    const err = new Error('no context')
    const error = vi.fn()
    const receiver = receiverWith({ logger: { ...silent, error } }).onAny(() => {})
    const waitUntil = () => {
      throw err
    }
    expect((await receiver.receive({ ...(await makeDelivery(payload)), waitUntil })).outcome).toBe('accepted')
    expect(error.mock.calls).toEqual([[{ err }, 'waitUntil threw']])
  })

  test('gets a promise that resolves once an event that fails is a dead letter', async () => {
    const receiver = receiverWith({ retry: { attempts: 2, baseMs: 1 } }).onAny(() => Promise.reject(new Error('no')))
    await (await deliver(receiver, payload)).handled
    expect(await receiver.inbox.deadLetters.list()).toHaveLength(1)
  })
})

describe('closing', () => {
  test('rejects every delivery with 503 and Retry-After, before it checks the delivery', async () => {
    const receiver = receiverWith().onAny(() => {})
    await receiver.close()
    for (const body of [payload, 'no JSON']) {
      expect(await deliver(receiver, body)).toMatchObject({
        status: 503,
        outcome: 'closing',
        headers: { 'retry-after': '3' },
      })
    }
  })

  test('rejects deliveries immediately, while running handlers finish', async () => {
    const started = signalled()
    const finish = signalled()
    let finished = false
    const receiver = receiverWith().onAny(async () => {
      started.resolve()
      await finish.promise
      finished = true
    })
    await deliver(receiver, payload)
    await started.promise
    const closed = receiver.close()
    expect((await deliver(receiver, samplePayload('encoding.failed'))).outcome).toBe('closing')
    finish.resolve()
    expect(await closed).toEqual({ unfinished: [] })
    expect(finished).toBe(true)
  })

  test('reports the events that it could not finish in time, and aborts their signals', async () => {
    const started = signalled()
    const reason = signalled<unknown>()
    const receiver = receiverWith().onAny((_, { signal }) => {
      signal.addEventListener('abort', () => reason.resolve(signal.reason))
      started.resolve()
      return new Promise(() => {})
    })
    await deliver(receiver, payload)
    await started.promise
    const { unfinished } = await receiver.close({ timeoutMs: 5 })
    expect(unfinished).toMatchObject([{ state: 'running', event: { mediaId: payload.media_id } }])
    expect(await reason.promise).toMatchObject({ code: 'closing' })
  })

  test('can be called again', async () => {
    const receiver = receiverWith()
    expect(await Promise.all([receiver.close(), receiver.close()])).toEqual([{ unfinished: [] }, { unfinished: [] }])
  })
})
