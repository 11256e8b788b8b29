import { once } from 'node:events'
import { inspect } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import type { DeliveryReport } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { listening, receiverWith } from './listening-receiver.ts'
import { payload, scenarios, sensitive, testPayload } from './scenarios.ts'

const table = Object.entries(scenarios)
const successes = ['accepted', 'duplicate', 'ignored', 'test', 'handled', 'challenge']
const text = (value: unknown) => inspect(value, { depth: null, maxStringLength: null, maxArrayLength: null })
const leaked = (value: unknown) => Object.values(sensitive).filter((marker) => text(value).includes(marker))

describe.each(table)('a delivery that is %s', (outcome, { status, level, event, run }) => {
  test('is reported once, with its key, type and media if they are known', async () => {
    const { deliveries, options } = listening()
    await run(options)
    expect(deliveries).toHaveLength(1)
    const [report] = deliveries
    expect(report).toMatchObject({ outcome, status, durationMs: expect.any(Number) })
    expect(report?.durationMs).toBeGreaterThanOrEqual(0)
    expect(report?.durationMs).toBeLessThan(5_000)
    const { key, type, mediaId } = report as DeliveryReport
    const { media_id, type: sent } = outcome === 'test' ? testPayload : payload
    const known = [expect.stringContaining(media_id), sent, media_id]
    expect([key, type, mediaId]).toEqual(event ? known : [undefined, undefined, undefined])
    if (successes.includes(outcome)) expect(report).not.toHaveProperty('reason')
    else expect(report?.reason).toMatch(/\w/)
  })

  test(`is logged at the level ${level}, in one line`, async () => {
    const { lines, deliveries, options } = listening()
    await run(options)
    const [line, ...others] = lines.filter(({ message }) => message.startsWith('delivery'))
    expect(others).toEqual([])
    expect(line).toMatchObject({ level, details: { outcome, status } })
    expect(Object.hasOwn(line?.details ?? {}, 'err')).toBe(deliveries[0]?.error !== undefined)
    expect(Object.hasOwn(deliveries[0] ?? {}, 'error')).toBe(deliveries[0]?.error !== undefined)
    const reason = deliveries[0]?.reason
    expect(line?.message).toBe(reason === undefined ? `delivery ${outcome}` : `delivery rejected: ${reason}`)
  })

  test('leaves nothing sensitive in reports and log lines', async () => {
    const { lines, deliveries, handlings, options } = listening()
    await run(options)
    expect(lines.length).toBeGreaterThan(0)
    expect(leaked({ lines, deliveries, handlings })).toEqual([])
  })

  test('leaves nothing sensitive on the console if there is no logger', async () => {
    const methods = ['debug', 'info', 'log', 'warn', 'error', 'trace'] as const
    const spies = methods.map((method) => vi.spyOn(console, method).mockImplementation(() => {}))
    try {
      await run({})
      const written = spies.flatMap((spy) => spy.mock.calls)
      expect(leaked(written)).toEqual([])
      const own = written.filter(([line]) => String(line).startsWith('media-webhooks: delivery'))
      expect(own).toHaveLength(level === 'warn' || level === 'error' ? 1 : 0)
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
  })
})

describe('the reason of a rejected delivery', () => {
  test.each([
    ['unauthorized', 'the token in the URL is wrong'],
    ['malformed', 'field media_id: expected a non-empty string'],
    ['too_large', 'the body is larger than 100 bytes'],
    ['closing', 'the receiver is closing'],
  ] as const)('is the cause of %s', async (outcome, reason) => {
    const { deliveries, options } = listening()
    await scenarios[outcome].run(options)
    expect(deliveries[0]?.reason).toBe(reason)
  })

  test('says how to fix a consumed body, in one line at the level error', async () => {
    const { lines, options } = listening()
    await scenarios.body_consumed.run(options)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      level: 'error',
      message: expect.stringMatching(/hmacSignature.*mount the receiver before it/),
    })
  })

  test('says that a parser left no body', async () => {
    const { deliveries, options } = listening()
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body: { parsed: undefined } }
    await receiverWith(options).receive(delivery)
    expect(deliveries).toMatchObject([{ outcome: 'body_consumed', reason: expect.stringContaining('left no body') }])
  })

  test('comes with the error that was thrown, for the user alone', async () => {
    for (const outcome of ['unavailable', 'internal'] as const) {
      const { deliveries, lines, options } = listening()
      await scenarios[outcome].run(options)
      expect(deliveries[0]?.error).toBeInstanceOf(Error)
      expect(lines[0]?.details['err']).toBe(deliveries[0]?.error)
    }
  })
})

describe('a run of a handler', () => {
  test('is reported with its handler, event and duration', async () => {
    const { handlings, lines, options } = listening()
    const receiver = receiverWith(options).on('encoding.finished', async () => {}, { name: 'publish' })
    const { handled } = await deliver(receiver, samplePayload('encoding.finished', { title: sensitive.title }))
    await handled
    expect(handlings).toEqual([
      {
        outcome: 'handled',
        handler: 'publish',
        key: expect.stringContaining('encoding.finished'),
        type: 'encoding.finished',
        mediaId: payload.media_id,
        attempt: 1,
        durationMs: expect.any(Number),
      },
    ])
    expect(lines.find(({ message }) => message.startsWith('handler publish handled'))).toMatchObject({ level: 'debug' })
    expect(leaked({ handlings, lines })).toEqual([])
  })

  test.each([
    ['retried', 'warn', /^handler onAny failed in attempt 1 and will run again in \d+ ms$/],
    ['dead-lettered', 'error', /^handler onAny failed in attempt 2, its last: the event becomes a dead letter$/],
  ] as const)('that is %s is logged at the level %s, with the error', async (outcome, level, text) => {
    const { handlings, lines, options } = listening()
    const error = new Error('no disk')
    const receiver = receiverWith({ ...options, retry: { attempts: 2, baseMs: 1 } }).onAny(() => Promise.reject(error))
    await (await deliver(receiver, samplePayload('encoding.finished', { title: sensitive.title }))).handled
    expect(handlings.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ['retried', 1],
      ['dead-lettered', 2],
    ])
    expect(handlings.find((report) => report.outcome === outcome)).toMatchObject({ error })
    const line = lines.find(({ message }) => text.test(message))
    expect(line).toMatchObject({ level, details: { err: error, mediaId: payload.media_id } })
    expect(leaked({ handlings, lines })).toEqual([])
  })

  test('that failed under ack: handled is logged as an error', async () => {
    const { handlings, lines, options } = listening()
    await scenarios.handler_failed.run(options)
    expect(handlings).toMatchObject([{ outcome: 'failed', attempt: 1 }])
    expect(lines.find(({ message }) => message.endsWith(' failed in attempt 1'))).toMatchObject({ level: 'error' })
  })
})

describe('an attempt at an event', () => {
  test('is reported once, after its handlers, with the time since the delivery', async () => {
    const { attempts, handlings, options } = listening()
    const receiver = receiverWith(options)
    receiver.onAny(() => {})
    receiver.onAny(() => {})
    await (await deliver(receiver, samplePayload('encoding.finished', { title: sensitive.title }))).handled
    expect(handlings).toHaveLength(2)
    expect(attempts).toEqual([
      {
        outcome: 'handled',
        key: expect.stringContaining('encoding.finished'),
        type: 'encoding.finished',
        mediaId: payload.media_id,
        attempt: 1,
        sinceReceivedMs: expect.any(Number),
      },
    ])
    expect(attempts[0]?.sinceReceivedMs).toBeGreaterThanOrEqual(0)
    expect(leaked(attempts)).toEqual([])
  })

  test('that fails is retried, and dead-lettered in the end', async () => {
    const { attempts, options } = listening()
    const receiver = receiverWith({ ...options, retry: { attempts: 2, baseMs: 1 } })
    receiver.onAny(() => Promise.reject(new Error('no disk')))
    receiver.onAny(() => {})
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    expect(attempts.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ['retried', 1],
      ['dead-lettered', 2],
    ])
  })

  test('fails permanently under ack: handled', async () => {
    const { attempts, options } = listening()
    await scenarios.handler_failed.run(options)
    expect(attempts).toMatchObject([{ outcome: 'failed', attempt: 1 }])
  })

  test('is stopped when the inbox closes before its handler ends', async () => {
    const { attempts, options } = listening()
    const receiver = receiverWith(options).onAny((_, { signal }) => once(signal, 'abort'))
    const { handled } = await deliver(receiver, samplePayload('encoding.finished'))
    await receiver.close({ timeoutMs: 1 })
    await handled
    await vi.waitFor(() => expect(attempts).toMatchObject([{ outcome: 'stopped', attempt: 1 }]))
  })
})

describe('receiver.observe', () => {
  test('adds the same hooks twice, and removes each addition once', async () => {
    const receiver = receiverWith()
    const delivery = vi.fn()
    const hooks = { delivery }
    const stop = receiver.observe(hooks)
    receiver.observe(hooks)
    await deliver(receiver, payload)
    expect(delivery).toHaveBeenCalledTimes(2)
    stop()
    stop()
    await deliver(receiver, payload)
    expect(delivery).toHaveBeenCalledTimes(3)
  })

  test('adds hooks to those of the options, and to those that were added before', async () => {
    const [first, second, third] = [listening(), listening(), listening()]
    const receiver = receiverWith(first.options).onAny(() => {})
    receiver.observe(second.options.hooks)
    receiver.observe(third.options.hooks)
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    for (const { deliveries, handlings, attempts } of [first, second, third]) {
      expect([deliveries, handlings, attempts].map(({ length }) => length)).toEqual([1, 1, 1])
    }
  })

  test('returns a function that removes the hooks, and no others', async () => {
    const [first, second] = [listening(), listening()]
    const receiver = receiverWith(first.options).onAny(() => {})
    const stop = receiver.observe(second.options.hooks)
    stop()
    stop()
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    expect([first.deliveries.length, second.deliveries.length]).toEqual([1, 0])
  })

  test('calls each hook as a method of its object, which may remember more, and leaves out the ones that it does not have', async () => {
    const counter = {
      runs: 0,
      handling() {
        this.runs++
      },
    }
    const receiver = receiverWith().onAny(() => {})
    receiver.observe(counter)
    receiver.observe({})
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    expect(counter.runs).toBe(1)
  })
})

describe('a hook or a logger that throws', () => {
  const broken = () => {
    throw new Error('broken')
  }
  const rejecting = async () => broken()

  test.each([
    ['hooks that throw', { hooks: { delivery: broken, handling: broken, attempt: broken } }],
    ['hooks that reject', { hooks: { delivery: rejecting, handling: rejecting, attempt: rejecting } }],
    ['a logger that throws', { logger: { debug: broken, info: broken, warn: broken, error: broken } }],
    ['a logger that rejects', { logger: { debug: rejecting, info: rejecting, warn: rejecting, error: rejecting } }],
  ])('changes nothing: %s', async (_, options) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const calls: string[] = []
    const receiver = receiverWith(options).on('encoding.finished', ({ mediaId }) => void calls.push(mediaId))
    const { status, handled } = await deliver(receiver, samplePayload('encoding.finished'))
    await handled
    expect(status).toBe(200)
    expect(calls).toEqual([payload.media_id])
    expect((await deliver(receiver, 'no JSON')).status).toBe(400)
    await new Promise(setImmediate)
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('is logged', async () => {
    const { lines, options } = listening()
    const receiver = receiverWith({ ...options, hooks: { delivery: broken, handling: broken, attempt: broken } }).onAny(
      () => {},
    )
    await (await deliver(receiver, samplePayload('encoding.finished'))).handled
    const errors = lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(errors.sort()).toEqual(['the attempt hook threw', 'the delivery hook threw', 'the handling hook threw'])
  })

  test('is optional', async () => {
    expect(
      (
        await deliver(
          receiverWith({ hooks: {} }).onAny(() => {}),
          samplePayload('encoding.finished'),
        )
      ).status,
    ).toBe(200)
  })
})
