import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { HandlerContext } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { signalled } from '../support/signalled.ts'
import { receiverWithReports } from './reported-receiver.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const timedOut = expect.objectContaining({ name: 'WebhookError', code: 'timeout' })

const never: [string, () => unknown][] = [
  ['a promise that never settles', () => new Promise(() => {})],
  ['a thenable that never settles', () => ({ then() {} })],
  [
    'a thenable that resolves with a promise that never settles',
    () => ({ then: (resolve: (value: unknown) => void) => resolve(new Promise(() => {})) }),
  ],
]

describe('the time limit of a handler', () => {
  test.each(never)('ends the wait for %s', async (_, handler) => {
    const { receiver, handled, reports } = receiverWithReports({ handlerTimeoutMs: 10, retry: { attempts: 1 } })
    receiver.onAny(handler)
    receiver.onAny(() => {}, { name: 'next' })
    await handled()
    expect(reports).toMatchObject([
      { outcome: 'dead-lettered', error: timedOut },
      { handler: 'next', outcome: 'handled' },
    ])
    expect(reports[0]?.durationMs).toBeGreaterThanOrEqual(8)
    expect(await receiver.close()).toEqual({ unfinished: [] })
  })

  test('aborts the signal, which was not aborted before', async () => {
    const { receiver, handled } = receiverWithReports({ handlerTimeoutMs: 10, retry: { attempts: 1 } })
    let context: HandlerContext | undefined
    let atFirst: boolean | undefined
    receiver.onAny((_event, given) => {
      context = given
      atFirst = given.signal.aborted
      return new Promise((_resolve, reject) =>
        given.signal.addEventListener('abort', () => reject(given.signal.reason)),
      )
    })
    await handled()
    expect(atFirst).toBe(false)
    expect(context?.signal.aborted).toBe(true)
    expect(context?.signal.reason).toEqual(timedOut)
  })

  test('aborts a signal that is first read later', async () => {
    const { receiver, handled } = receiverWithReports({ handlerTimeoutMs: 10, retry: { attempts: 1 } })
    let context: HandlerContext | undefined
    receiver.onAny((_event, given) => {
      context = given
      return new Promise(() => {})
    })
    await handled()
    expect(context?.signal.reason).toEqual(timedOut)
  })

  test('does not depend on a handler that started earlier', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { receiver, outcomes } = receiverWithReports({ handlerTimeoutMs: 60, retry: { attempts: 1 } })
    receiver.on('encoding.started', () => new Promise(() => {}), { name: 'stuck' })
    receiver.on('encoding.finished', () => new Promise((resolve) => setTimeout(resolve, 40)), { name: 'quick' })
    const stuck = await deliver(receiver, samplePayload('encoding.started', { media_id: 'media-1' }))
    await vi.advanceTimersByTimeAsync(35)
    const quick = await deliver(receiver, samplePayload('encoding.finished', { media_id: 'media-2' }))
    await vi.advanceTimersByTimeAsync(40)
    await Promise.all([stuck.handled, quick.handled])
    expect(outcomes()).toEqual(['stuck 1 dead-lettered', 'quick 1 handled'])
  })

  test('keeps no process alive, and leaves no timer once the handler has ended', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const cleared = vi.spyOn(globalThis, 'clearTimeout')
    onTestFinished(() => void vi.restoreAllMocks())
    const { receiver, handled } = receiverWithReports({ handlerTimeoutMs: 12_345 })
    const timer = () => {
      const call = timers.mock.calls.findIndex(([, ms]) => ms === 12_345)
      return timers.mock.results[call]?.value as NodeJS.Timeout
    }
    let hadRef: boolean | undefined
    receiver.onAny(() => {
      hadRef = timer().hasRef()
    })
    await handled()
    expect(hadRef).toBe(false)
    expect(cleared).toHaveBeenCalledWith(timer())
  })

  test('is final: a handler that ends later changes nothing', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ handlerTimeoutMs: 10, retry: { attempts: 1 } })
    const { promise: late, resolve } = signalled()
    receiver.onAny(() => late.then(() => Promise.reject(new Error('late'))), { name: 'h' })
    await handled()
    resolve()
    // An unhandled rejection would fail the run.
    await new Promise((done) => setTimeout(done, 5))
    expect(outcomes()).toEqual(['h 1 dead-lettered'])
  })

  test('starts again with each attempt, with a new signal', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ handlerTimeoutMs: 10 })
    const signals = new Set<AbortSignal>()
    receiver.onAny(
      (_event, { signal, attempt }) => {
        signals.add(signal)
        return attempt === 1 ? new Promise(() => {}) : signal.aborted && Promise.reject(new Error('aborted'))
      },
      { name: 'h' },
    )
    await handled()
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 handled'])
    expect(signals.size).toBe(2)
  })
})

describe('the signal of a handler', () => {
  test('is made only when it is read', async () => {
    let made = 0
    const Original = AbortController
    vi.stubGlobal(
      'AbortController',
      class extends Original {
        constructor() {
          super()
          made++
        }
      },
    )
    const { receiver, handled } = receiverWithReports()
    let reads = 0
    receiver.onAny((_event, context) => {
      for (let i = 0; i < reads; i++) expect(context.signal).toBe(context.signal)
    })
    await handled({ media_id: 'media-1' })
    expect(made).toBe(0)
    reads = 3
    await handled({ media_id: 'media-2' })
    expect(made).toBeGreaterThan(0)
    expect(await receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('is freed after the event, even if the handler left a listener on it', async () => {
    const { receiver, handled } = receiverWithReports()
    const signals: WeakRef<AbortSignal>[] = []
    receiver.onAny((_event, { signal }) => {
      signal.addEventListener('abort', () => {})
      signals.push(new WeakRef(signal))
    })
    for (let i = 0; i < 10; i++) await handled({ media_id: `media-${i}` })
    await collectGarbage()
    const left = signals.filter((each) => each.deref() !== undefined)
    // The newest one may still be referred to from the stack.
    expect(signals).toHaveLength(10)
    expect(left.length).toBeLessThan(2)
  })

  test('is aborted when closing gives up, even if it is first read after that', async () => {
    const { receiver } = receiverWithReports()
    const { promise: running, resolve: run } = signalled<HandlerContext>()
    receiver.onAny((_event, context) => {
      run(context)
      return new Promise(() => {})
    })
    await deliver(receiver, samplePayload('encoding.finished'))
    const context = await running
    await receiver.close({ timeoutMs: 5 })
    expect(context.signal.reason).toMatchObject({ code: 'closing' })
  })

  test('is aborted when closing gives up; that is no failure, and no other handler starts', async () => {
    const { receiver, outcomes, reports } = receiverWithReports()
    const { promise: running, resolve: run } = signalled<AbortSignal>()
    const told: unknown[] = []
    receiver.onAny(
      (_event, { signal }) => {
        run(signal)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      { name: 'running' },
    )
    receiver.onAny(() => {}, { name: 'left' })
    receiver.onError((error) => void told.push(error))
    await deliver(receiver, samplePayload('encoding.finished'))
    const signal = await running
    const { unfinished } = await receiver.close({ timeoutMs: 5 })
    expect(unfinished).toMatchObject([{ state: 'running', event: { type: 'encoding.finished' } }])
    expect(signal.reason).toMatchObject({ name: 'WebhookError', code: 'closing' })
    await vi.waitFor(() => expect(reports).toHaveLength(1))
    expect(outcomes()).toEqual(['running 1 stopped'])
    expect(told).toEqual([])
    expect(await deliver(receiver, samplePayload('encoding.started'))).toMatchObject({
      status: 503,
      outcome: 'closing',
    })
  })

  test('is not aborted while closing waits', async () => {
    const { receiver, outcomes } = receiverWithReports()
    const { promise: running, resolve: run } = signalled()
    const { promise: end, resolve: finish } = signalled()
    let aborted: boolean | undefined
    receiver.onAny(
      async (_event, { signal }) => {
        run()
        await end
        aborted = signal.aborted
      },
      { name: 'h' },
    )
    await deliver(receiver, samplePayload('encoding.finished'))
    await running
    const closed = receiver.close()
    finish()
    expect(await closed).toEqual({ unfinished: [] })
    expect(aborted).toBe(false)
    expect(outcomes()).toEqual(['h 1 handled'])
  })
})
