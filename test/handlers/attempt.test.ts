import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { createHandle } from '../../src/handlers/attempt.ts'
import { HandlerRegistry } from '../../src/handlers/registry.ts'
import type { RunReporter } from '../../src/handlers/reports.ts'
import type { RetrySchedule } from '../../src/handlers/retry.ts'
import type { Attempt } from '../../src/inbox/inbox.ts'
import { type HandlerContext, PermanentFailure } from '../../src/index.ts'
import { eventOf } from '../support/inbox.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'

afterEach(() => {
  vi.useRealTimers()
})

type HandlersByName = Readonly<Record<string, (context: HandlerContext) => unknown>>

const handlerTimeoutMs = 1_000

const fails = () => Promise.reject(new Error('no'))

const reporter: RunReporter = {
  run() {},
  attempt() {},
  within: (_span, call) => call(),
  inContext: (run, ...args) => run(...args),
  guarded: (_what, call) => call(),
}

/** Makes one attempt at an event, and returns its result and what was reported. */
async function attempted(handlers: HandlersByName, attempt: Partial<Attempt> = {}, retry?: RetrySchedule) {
  const registry = new HandlerRegistry(mediaService)
  for (const [name, handler] of Object.entries(handlers)) {
    registry.add(undefined, (_event: never, context: never) => handler(context), { name })
  }
  const toldOfErrors: string[] = []
  registry.addErrorHandler((_error, { handler, willRetry }) => {
    toldOfErrors.push(`${handler} ${willRetry ? 'is retried' : 'is not retried'}`)
  })
  const reports: string[] = []
  const outcomes: string[] = []
  const recording: RunReporter = {
    ...reporter,
    run: (outcome, { handler }, _error, retryInMs) => void reports.push([handler, outcome, retryInMs].join(' ').trim()),
    attempt: (outcome) => void outcomes.push(outcome),
  }
  const warn = vi.fn()
  const logger = { ...silent, warn }
  const handle = createHandle({ registry, reporter: recording, logger, handlerTimeoutMs, retry })
  const accepted = eventOf('one')
  const { signal } = new AbortController()
  const defaults = { number: 1, completed: [], aborted: false, signal }
  const result = await handle(accepted, Object.assign(attempt, { ...defaults, ...attempt }))
  return { result, reports, outcomes, toldOfErrors, warnings: warn.mock.calls, event: accepted.event }
}

describe('the record that a handler has succeeded', () => {
  test('is safe before the next handler begins', async () => {
    const order: string[] = []
    const succeeded = async (name: string) => {
      order.push(`recording ${name}`)
      await pause(5)
      order.push(`recorded ${name}`)
    }
    await attempted({ first: () => void order.push('first'), second: () => void order.push('second') }, { succeeded })
    expect(order).toEqual(['first', 'recording first', 'recorded first', 'second'])
  })

  test('is made immediately if the inbox makes it without a promise', async () => {
    const order: string[] = []
    const succeeded = (name: string) => void order.push(`recorded ${name}`)
    await attempted({ first: () => void order.push('first'), second: () => void order.push('second') }, { succeeded })
    expect(order).toEqual(['first', 'recorded first', 'second'])
  })

  test('is not made of the last handler, whose end is the end of the event', async () => {
    const succeeded = vi.fn()
    expect((await attempted({ only: () => {} }, { succeeded })).result).toEqual({ status: 'done' })
    expect(succeeded).not.toHaveBeenCalled()
  })

  test('is not made of a handler that failed, or that succeeded in an earlier attempt', async () => {
    const succeeded = vi.fn()
    const handlers = { earlier: () => {}, failed: fails, fine: () => {}, last: () => {} }
    await attempted(handlers, { completed: ['earlier'], succeeded })
    expect(succeeded.mock.calls).toEqual([['fine']])
  })
})

describe('an attempt in which several handlers fail', () => {
  const handlers = { one: fails, fine: () => {}, two: fails }

  test('is followed by one pause, which is drawn once', async () => {
    const delayAfter = vi.fn(() => 100 * delayAfter.mock.calls.length)
    const { result, reports } = await attempted(handlers, { number: 4 }, { attempts: 5, delayAfter })
    expect(delayAfter.mock.calls).toEqual([[4]])
    expect(result).toMatchObject({ status: 'retry', delayMs: 100, completed: ['fine'] })
    expect(reports).toEqual(['one retried 100', 'fine handled', 'two retried 100'])
  })

  test('makes a dead letter with every failure when it is the last', async () => {
    const delayAfter = () => expect.unreachable()
    const { result, reports } = await attempted(handlers, { number: 5 }, { attempts: 5, delayAfter })
    const failures = ['one', 'two'].map((handler) => ({ handler, message: 'Error: no' }))
    expect(result).toMatchObject({ status: 'dead', completed: ['fine'], failures })
    expect('failures' in result && result.failures[0]?.stack).toMatch(/^at fails \(.*attempt\.test\.ts:\d+:\d+\)/)
    expect(reports).toEqual(['one dead-lettered', 'fine handled', 'two dead-lettered'])
  })

  test('fails permanently if nothing is retried', async () => {
    const { result, reports, toldOfErrors } = await attempted(handlers)
    expect(result).toMatchObject({ status: 'dead' })
    expect(reports).toEqual(['one failed', 'fine handled', 'two failed'])
    expect(toldOfErrors).toEqual(['one is not retried', 'two is not retried'])
  })
})

describe('the text of a failure', () => {
  const messageOf = async (thrown: unknown) => {
    const { result } = await attempted({ failing: () => Promise.reject(thrown) })
    return result.status === 'dead' ? result.failures[0]?.message : undefined
  }

  test('is kept whole up to 2,000 characters, and cut after them', async () => {
    const longest = 'x'.repeat(2_000)
    expect(await messageOf(longest)).toBe(longest)
    expect(await messageOf(`${longest}y`)).toBe(`${longest}…`)
  })
})

describe('an event that has no handler any more', () => {
  const retry = { attempts: 2, delayAfter: () => 7 }

  test('is retried, since a rollback may register one, and says so', async () => {
    const { result, warnings, event } = await attempted({}, { completed: ['removed'] }, retry)
    expect(result).toMatchObject({ status: 'retry', delayMs: 7, completed: ['removed'] })
    expect(warnings).toEqual([[{ type: event.type, retryInMs: 7 }, 'no handler is registered for its type']])
  })

  test('becomes a dead letter in the end', async () => {
    const { result } = await attempted({}, { number: 2 }, retry)
    const failures = [{ handler: 'none', message: 'no handler is registered for its type' }]
    expect(result).toEqual({ status: 'dead', completed: [], failures })
  })
})

describe('an attempt that the inbox takes back', () => {
  const retry = { attempts: 5, delayAfter: () => 7 }

  test('then reports a handler that fails as stopped, not as failed, and is made again immediately', async () => {
    const attempt = { aborted: false }
    const stopped = () => {
      attempt.aborted = true
      return fails()
    }
    const handlers = { stopped, left: () => expect.unreachable() }
    const { result, reports, toldOfErrors } = await attempted(handlers, attempt, retry)
    expect(result).toEqual({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    expect(reports).toEqual(['stopped stopped'])
    expect(toldOfErrors).toEqual([])
  })

  test('counts a handler as completed only if its transaction is committed', async () => {
    const attempt = { aborted: false, transaction: (async (_, run) => run({} as never)) as Attempt['transaction'] }
    const commits = async ({ transaction }: HandlerContext & { transaction?: (run: () => void) => Promise<void> }) => {
      await transaction?.(() => {})
      attempt.aborted = true
    }
    expect((await attempted({ commits }, attempt)).result).toMatchObject({ status: 'retry', completed: ['commits'] })
    const returns = () => {
      attempt.aborted = true
    }
    attempt.aborted = false
    expect((await attempted({ returns }, attempt)).result).toMatchObject({ status: 'retry', completed: [] })
  })
})

describe('the signal of a handler', () => {
  test('is one object, and is aborted with that of the attempt', async () => {
    const controller = new AbortController()
    const { promise, resolve } = signalled<AbortSignal>()
    const reason = new Error('the lease was lost')
    const waits = (context: HandlerContext) => {
      expect(context.signal).toBe(context.signal)
      resolve(context.signal)
      return new Promise((_, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason))
      })
    }
    const handled = attempted({ waits }, { signal: controller.signal }, undefined)
    const signal = await promise
    expect(signal.aborted).toBe(false)
    controller.abort(reason)
    expect((await handled).result).toMatchObject({ failures: [{ message: 'Error: the lease was lost' }] })
    expect(signal.reason).toBe(reason)
  })

  test.each<[string, () => unknown]>([
    ['finished', () => {}],
    ['failed', fails],
  ])('is not aborted by the time limit once the handler has %s', async (_, end) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    let signal: AbortSignal | undefined
    const ending = (context: HandlerContext) => {
      signal = context.signal
      return end()
    }
    await attempted({ ending })
    vi.advanceTimersByTime(handlerTimeoutMs * 2)
    expect(signal?.aborted).toBe(false)
  })

  test('is not aborted with the attempt once the handler has finished', async () => {
    const controller = new AbortController()
    const signals: AbortSignal[] = []
    const first = ({ signal }: HandlerContext) => void signals.push(signal)
    const second = ({ signal }: HandlerContext) => {
      signals.push(signal)
      controller.abort()
    }
    await attempted({ first, second }, { signal: controller.signal })
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
  })
})

/** The result of an attempt that leaves handlers out. */
const released = { status: 'retry', delayMs: 0, failures: [], counts: false }

describe('a partial attempt', () => {
  const isPartial = true

  test('leaves the event to another process once the handlers of this one have succeeded', async () => {
    const { result, outcomes } = await attempted({ a() {}, b() {} }, { lacksHandlers: isPartial, completed: ['a'] })
    expect(result).toEqual({ ...released, completed: ['a', 'b'] })
    expect(outcomes).toEqual(['released'])
  })

  test('does not fail if this process has no handler at all', async () => {
    const { result, outcomes, warnings } = await attempted({}, { lacksHandlers: isPartial })
    expect(result).toEqual({ ...released, completed: [] })
    expect([outcomes, warnings]).toEqual([['released'], []])
  })

  test('fails as any other if a handler does', async () => {
    const retry = { attempts: 2, delayAfter: () => 7 }
    const first = await attempted({ a: fails, b() {} }, { lacksHandlers: isPartial }, retry)
    expect(first.result).toMatchObject({ status: 'retry', delayMs: 7, completed: ['b'], failures: [{ handler: 'a' }] })
    const last = await attempted({ a: fails, b() {} }, { lacksHandlers: isPartial, number: 2 }, retry)
    expect(last.result).toMatchObject({ status: 'dead', completed: ['b'], failures: [{ handler: 'a' }] })
    expect([first.outcomes, last.outcomes]).toEqual([['retried'], ['dead-lettered']])
  })

  test('leaves their run to the handlers of the other process if one of this process fails permanently', async () => {
    const retry = { attempts: 2, delayAfter: () => 7 }
    const never = () => Promise.reject(new PermanentFailure('no'))
    const failed = { handler: 'a', message: 'PermanentFailure: no' }
    const first = await attempted({ a: never, b() {} }, { lacksHandlers: isPartial }, retry)
    const failures = [{ ...failed, final: true as const }]
    expect(first.result).toMatchObject({ status: 'retry', delayMs: 0, completed: ['b'], failures })
    expect([first.outcomes, first.reports]).toEqual([['retried'], ['a dead-lettered', 'b handled']])
    const again = await attempted(
      { a: never, b() {} },
      { lacksHandlers: isPartial, number: 2, completed: ['b'], failures },
      retry,
    )
    expect(again.result).toEqual({ ...released, completed: ['b'] })
    expect([again.outcomes, again.reports]).toEqual([['released'], []])
    const last = await attempted({ c() {} }, { number: 2, completed: ['b'], failures }, retry)
    expect(last.result).toEqual({ status: 'dead', completed: ['b', 'c'], failures: [failed] })
  })
})

describe('an attempt while a handler is paused', () => {
  const isPaused = (name: string) => name === 'a'

  test('runs the others, and releases the event', async () => {
    const { result, outcomes, reports } = await attempted({ a() {}, b() {}, c() {} }, { isPaused })
    expect(result).toEqual({ ...released, completed: ['b', 'c'] })
    expect([outcomes, reports]).toEqual([['released'], ['b handled', 'c handled']])
  })

  test('ends the event if that handler has succeeded, or does not run again', async () => {
    expect((await attempted({ a() {}, b() {} }, { isPaused, completed: ['a'] })).result).toEqual({ status: 'done' })
    const failures = [{ handler: 'a', message: 'no', final: true as const }]
    const { result } = await attempted({ a() {}, b() {} }, { isPaused, failures })
    expect(result).toMatchObject({ status: 'dead', completed: ['b'], failures: [{ handler: 'a' }] })
  })

  test('leaves it out if the pause comes while another handler runs', async () => {
    const paused = new Set<string>()
    const { result } = await attempted(
      { b: () => void paused.add('a'), a() {} },
      { isPaused: (name) => paused.has(name) },
    )
    expect(result).toEqual({ ...released, completed: ['b'] })
  })

  test('leaves it out if the pause comes while it waits for its limit', async () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(undefined, () => {}, { name: 'a', rate: '1/h' })
    registry.add(undefined, () => {}, { name: 'b' })
    const handle = createHandle({ registry, reporter, logger: silent, handlerTimeoutMs, retry: undefined })
    const { signal } = new AbortController()
    const attempt = { number: 1, completed: [], aborted: false, signal }
    expect(await handle(eventOf('first'), attempt)).toEqual({ status: 'done' })
    const paused = new Set<string>()
    const whileWaiting: Attempt['whileWaiting'] = async () => void paused.add('a')
    const result = await handle(eventOf('second'), { ...attempt, whileWaiting, isPaused: (name) => paused.has(name) })
    expect(result).toEqual({ ...released, completed: ['b'] })
  })

  test('has the schedule of a handler that fails, and keeps the run of the paused one after a permanent failure', async () => {
    const retry = { attempts: 2, delayAfter: () => 7 }
    const first = await attempted({ a() {}, b: fails }, { isPaused }, retry)
    expect(first.result).toMatchObject({ status: 'retry', delayMs: 7, failures: [{ handler: 'b' }] })
    expect(first.result).not.toMatchObject({ counts: false })
    const never = () => Promise.reject(new PermanentFailure('no'))
    for (const handlers of [
      { a() {}, b: never },
      { b: never, a() {} },
    ])
      expect((await attempted(handlers, { isPaused }, retry)).result).toMatchObject({
        status: 'retry',
        delayMs: 0,
        failures: [{ handler: 'b', final: true }],
      })
    const last = await attempted({ a() {}, b: fails }, { isPaused, number: 2 }, retry)
    expect(last.result).toMatchObject({ status: 'dead', completed: [] })
  })
})

describe('an attempt that does not count, because the storage failed in a transaction', () => {
  const retry = { attempts: 1, delayAfter: () => 7 }
  const transaction: Attempt['transaction'] = async (scope) => {
    scope.storageFailed = true
    throw new Error('the disk is full')
  }
  const stored = (context: HandlerContext) =>
    (context as unknown as { transaction(run: () => void): unknown }).transaction(() => {})

  test('is made again with every handler, except those that have failed for the last time', async () => {
    const never = () => Promise.reject(new PermanentFailure('no'))
    const handlers = { fails, never, stored, failsLater: fails }
    const { result } = await attempted(handlers, { transaction }, retry)
    expect(result).toMatchObject({ status: 'retry', delayMs: 7, counts: false })
    expect('failures' in result && result.failures.map(({ handler, final }) => [handler, final])).toEqual([
      // It was reported as dead-lettered before the storage failed.
      ['fails', true],
      ['never', true],
      ['stored', undefined],
      ['failsLater', undefined],
    ])
  })

  test('is made again later each time', async () => {
    const growing = { attempts: 5, delayAfter: (attempt: number) => 2 ** attempt }
    const delays = [undefined, 1, 5].map(async (uncounted) => {
      const { result } = await attempted({ stored }, { transaction, uncounted }, growing)
      return 'delayMs' in result && result.delayMs
    })
    expect(await Promise.all(delays)).toEqual([2, 4, 64])
  })
})
