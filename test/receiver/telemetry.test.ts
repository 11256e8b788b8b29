import { describe, expect, test, vi } from 'vitest'
import type { TraceCarrier } from '../../src/inbox/reading.ts'
import { createReceiver, memoryInbox, type ReceiverOptions, unverified, WebhookError } from '../../src/index.ts'
import type { Telemetry } from '../../src/receiver/telemetry.ts'
import { deliver, encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'
import { answeringInbox } from './listening-receiver.ts'

/** Telemetry that writes down what it is told, and is active while it is within a span. */
function watchedTelemetry(trace?: TraceCarrier) {
  const calls: string[] = []
  const active: string[] = []
  const within =
    (span: string) =>
    <Result>(call: () => Result): Result => {
      active.push(span)
      try {
        return call()
      } finally {
        active.pop()
      }
    }
  const telemetry: Telemetry = {
    opened: (inbox, name) => calls.push(`opened ${name} ${'accept' in inbox}`),
    closing: () => calls.push('closing'),
    startDelivery: ({ method }) => {
      calls.push(`delivery begins ${method}`)
      return {
        within: within('delivery'),
        trace,
        end: ({ outcome }, event) => calls.push(`delivery ends ${outcome} ${event?.mediaId}`),
      }
    },
    startRun: ({ accepted, handler, attempt }) => {
      calls.push(`run begins ${handler} ${attempt} ${accepted.trace?.['traceparent']}`)
      return { within: within(`run ${handler}`), end: ({ outcome }) => calls.push(`run ends ${handler} ${outcome}`) }
    },
    measured: (step, durationMs, error) => calls.push(`measured ${step} ${durationMs >= 0} ${error}`),
    delivery: ({ outcome }) => calls.push(`hook delivery ${outcome}`),
    handling: ({ outcome }) => calls.push(`hook handling ${outcome}`),
    attempt: ({ outcome }) => calls.push(`hook attempt ${outcome}`),
  }
  return { telemetry, calls, active }
}

const receiverWith = (options: Partial<ReceiverOptions>) =>
  createReceiver({ verify: unverified(), inbox: memoryInbox(), logger: silent, ...options })

const payload = samplePayload('encoding.finished', { media_id: 'a-film' })

describe('telemetry', () => {
  test('hears of a delivery and of its handlers, in order', async () => {
    const { telemetry, calls } = watchedTelemetry({ traceparent: 'a trace' })
    const receiver = receiverWith({ telemetry }).on('encoding.finished', () => {}, { name: 'publish' })
    await (await deliver(receiver, payload)).handled
    await receiver.close()
    expect(calls).toEqual([
      'opened memoryInbox true',
      'delivery begins POST',
      'hook delivery accepted',
      'delivery ends accepted a-film',
      'run begins publish 1 a trace',
      'hook handling handled',
      'run ends publish handled',
      'hook attempt handled',
      'closing',
    ])
  })

  test('hears of every attempt, with the trace of the delivery', async () => {
    const { telemetry, calls } = watchedTelemetry({ traceparent: 'a trace' })
    const receiver = receiverWith({ telemetry, retry: { attempts: 2, baseMs: 1 } })
    receiver.on(
      'encoding.finished',
      () => {
        throw new Error('broken')
      },
      { name: 'publish' },
    )
    await (await deliver(receiver, payload)).handled
    expect(calls.filter((call) => call.startsWith('run'))).toEqual([
      'run begins publish 1 a trace',
      'run ends publish retried',
      'run begins publish 2 a trace',
      'run ends publish dead-lettered',
    ])
  })

  test('is active while a delivery is verified and while its handler runs', async () => {
    const { telemetry, active } = watchedTelemetry()
    const seen: string[] = []
    const verify = {
      name: 'watched',
      needsBytes: false,
      verify: () => {
        seen.push(...active)
        return { verified: true } as const
      },
    }
    const receiver = receiverWith({ telemetry, verify }).on('encoding.finished', () => void seen.push(...active), {
      name: 'publish',
    })
    await (await deliver(receiver, payload)).handled
    expect(seen).toEqual(['delivery', 'run publish'])
  })

  test('hears of a rejection without an event', async () => {
    const { telemetry, calls } = watchedTelemetry()
    await deliver(receiverWith({ telemetry }), 'no JSON')
    expect(calls.slice(1)).toEqual([
      'delivery begins POST',
      'hook delivery malformed',
      'delivery ends malformed undefined',
    ])
  })

  test('with ack "handled", the handler ends before the delivery', async () => {
    const { telemetry, calls } = watchedTelemetry()
    const receiver = receiverWith({ telemetry, ack: 'handled' }).on('encoding.finished', () => {}, { name: 'publish' })
    await deliver(receiver, payload)
    expect(calls.filter((call) => /^(run|delivery) /.test(call))).toEqual([
      'delivery begins POST',
      'run begins publish 1 undefined',
      'run ends publish handled',
      'delivery ends handled a-film',
    ])
  })

  test('is told that the receiver closes once, however often it is closed', async () => {
    const { telemetry, calls } = watchedTelemetry()
    const receiver = receiverWith({ telemetry })
    await Promise.all([receiver.close(), receiver.close()])
    expect(calls.filter((call) => call === 'closing')).toHaveLength(1)
  })

  test('does not keep hooks from being called', async () => {
    const { telemetry, calls } = watchedTelemetry()
    const hooks = { delivery: () => void calls.push('own hook') }
    await deliver(receiverWith({ telemetry, hooks }), payload)
    expect(calls).toEqual(expect.arrayContaining(['own hook', 'hook delivery ignored']))
  })

  test.each(['startDelivery', 'startRun', 'measured', 'delivery', 'handling', 'attempt', 'closing'] as const)(
    'changes nothing when %s throws',
    async (method) => {
      const { telemetry, calls } = watchedTelemetry()
      const fail = () => {
        throw new Error('broken')
      }
      const handler = vi.fn()
      const receiver = receiverWith({ telemetry: { ...telemetry, [method]: fail } }).on('encoding.finished', handler)
      const delivered = await deliver(receiver, payload)
      await delivered.handled
      expect(delivered).toMatchObject({ status: 200, outcome: 'accepted' })
      expect(handler).toHaveBeenCalledOnce()
      expect(await receiver.close()).toEqual({ unfinished: [] })
      expect(calls.length).toBeGreaterThan(5)
    },
  )

  test.each(['within', 'end', 'trace'])('changes nothing when %s of a span throws', async (member) => {
    const { telemetry } = watchedTelemetry()
    const span = {
      within: <Result>(call: () => Result): Result => call(),
      trace: undefined,
      end() {},
    }
    const broken = Object.defineProperty({ ...span }, member, {
      get() {
        throw new Error('broken')
      },
    })
    const handler = vi.fn()
    const receiver = receiverWith({
      telemetry: { ...telemetry, startDelivery: () => broken, startRun: () => (member === 'within' ? span : broken) },
    }).on('encoding.finished', handler)
    const delivered = await deliver(receiver, payload)
    await delivered.handled
    expect(delivered).toMatchObject({ status: 200, outcome: 'accepted' })
    expect(handler).toHaveBeenCalledOnce()
    expect(await receiver.close()).toEqual({ unfinished: [] })
  })

  test('has a delivery received once, although within of its span throws after the call', async () => {
    const { telemetry } = watchedTelemetry()
    const within = (call: () => unknown) => {
      call()
      throw new Error('broken')
    }
    const span = { within: untyped(within), trace: undefined, end() {} }
    const receiver = receiverWith({ telemetry: { ...telemetry, startDelivery: () => span } })
    receiver.on('encoding.finished', () => {})
    expect(await deliver(receiver, payload)).toMatchObject({ outcome: 'accepted' })
  })

  test('has a delivery received once, although within of its span calls it later', async () => {
    const { telemetry } = watchedTelemetry()
    const bodies = vi.fn(async () => encodePayload(payload))
    const within = async (call: () => unknown) => {
      await new Promise((resolve) => setTimeout(resolve))
      return call()
    }
    const span = { within: untyped(within), trace: undefined, end() {} }
    const receiver = receiverWith({ telemetry: { ...telemetry, startDelivery: () => span } })
    await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body: bodies })
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(bodies).toHaveBeenCalledOnce()
  })

  test.each<[string, unknown]>([
    [
      'throws before the call',
      {
        within() {
          throw new Error('broken')
        },
      },
    ],
    [
      'throws after the call',
      {
        within(call: () => void) {
          call()
          throw new Error('broken')
        },
      },
    ],
    ['never calls', { within() {} }],
    [
      'calls twice',
      {
        within(call: () => void) {
          call()
          call()
        },
      },
    ],
    ['is null', null],
    ['is empty', {}],
    ['is a promise', Promise.resolve()],
  ])('has an event handled once by each handler, although a span %s', async (_, span) => {
    const { telemetry } = watchedTelemetry()
    const handler = vi.fn()
    const failing = vi.fn(() => {
      if (failing.mock.calls.length === 1) throw new Error('of the handler')
    })
    const errors: unknown[] = []
    const receiver = receiverWith({
      telemetry: { ...telemetry, startDelivery: () => untyped(span), startRun: () => untyped(span) },
      retry: { baseMs: 1 },
    })
    receiver
      .on('encoding.finished', handler)
      .on('encoding.finished', failing)
      .onError((error) => errors.push(error))
    await (await deliver(receiver, payload)).handled
    expect(handler).toHaveBeenCalledOnce()
    expect(errors).toMatchObject([{ message: 'of the handler' }])
    expect(failing).toHaveBeenCalledTimes(2)
  })

  test('closes the inbox again when it does not take it, so that a file can be opened by the next receiver', () => {
    const { telemetry } = watchedTelemetry()
    const opened = () => {
      throw new Error('it serves another receiver')
    }
    const close = vi.fn(async () => ({ unfinished: [] }))
    const inbox = answeringInbox(() => 'accepted', { close })
    expect(() => receiverWith({ inbox, telemetry: { ...telemetry, opened } })).toThrow('it serves another receiver')
    expect(close).toHaveBeenCalledOnce()
  })

  test.each([[{}], [() => {}]])('%o is none: the parentheses may be missing', (telemetry) => {
    expect(() => receiverWith({ telemetry: untyped(telemetry) })).toThrow(WebhookError)
  })
})
