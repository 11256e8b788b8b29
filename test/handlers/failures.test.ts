import { describe, expect, test, vi } from 'vitest'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { createHandle } from '../../src/handlers/attempt.ts'
import { HandlerRegistry } from '../../src/handlers/registry.ts'
import type { FailedRun, Logger } from '../../src/index.ts'
import { safeLogger } from '../../src/internal/logger.ts'
import { Reporter } from '../../src/receiver/reporter.ts'
import { eventOf } from '../support/inbox.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'
import { revokedProxy } from '../support/untyped.ts'
import { receiverWithReports } from './reported-receiver.ts'

const textless = {
  toString() {
    throw new Error('no text')
  },
}

const failing: [string, () => unknown, string][] = [
  [
    'throws',
    () => {
      throw new TypeError('no')
    },
    'TypeError: no',
  ],
  ['rejects', async () => Promise.reject(new Error('no')), 'Error: no'],
  ['rejects with a string', () => Promise.reject('no'), 'no'],
  ['rejects with nothing', () => Promise.reject(), 'undefined'],
  ['rejects with null', () => Promise.reject(null), 'null'],
  ['rejects with an object that no string can be made of', () => Promise.reject(textless), 'an unprintable error'],
  ['rejects with a revoked proxy', () => Promise.reject(revokedProxy()), 'an unprintable error'],
  [
    'returns a thenable that rejects',
    () => ({ then: (_: unknown, no: (e: Error) => void) => no(new Error('no')) }),
    'Error: no',
  ],
  [
    'returns a thenable that throws',
    () => ({
      then() {
        throw new Error('no')
      },
    }),
    'Error: no',
  ],
]

describe('a handler that fails', () => {
  test.each(failing)('because it %s is retried, and becomes a dead letter in the end', async (_, handler, message) => {
    const { receiver, handled, outcomes } = receiverWithReports({ retry: { attempts: 2, baseMs: 1 } })
    receiver.onAny(handler, { name: 'h' })
    expect((await handled()).status).toBe(200)
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 dead-lettered'])
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    expect(deadLetter).toMatchObject({ attempts: 2, completed: [], failures: [{ handler: 'h', message }] })
  })

  test('is retried alone: handlers that succeeded do not run again', async () => {
    const { receiver, handled, outcomes } = receiverWithReports()
    let failures = 2
    receiver.onAny(() => {}, { name: 'before' })
    receiver.onAny(
      () => {
        if (failures-- > 0) throw new Error('no')
      },
      { name: 'flaky' },
    )
    receiver.onAny(async () => {}, { name: 'after' })
    await handled()
    expect(outcomes()).toEqual([
      'before 1 handled',
      'flaky 1 retried',
      'after 1 handled',
      'flaky 2 retried',
      'flaky 3 handled',
    ])
    expect(await receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('is tried 5 times, and is replayed alone', async () => {
    const { receiver, handled, outcomes, reports } = receiverWithReports()
    receiver.onAny(() => {}, { name: 'fine' })
    receiver.onAny(() => Promise.reject(new Error('no')), { name: 'bad' })
    await handled()
    expect(outcomes()).toEqual([
      'fine 1 handled',
      'bad 1 retried',
      'bad 2 retried',
      'bad 3 retried',
      'bad 4 retried',
      'bad 5 dead-lettered',
    ])
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    expect(deadLetter).toMatchObject({ attempts: 5, completed: ['fine'], failures: [{ handler: 'bad' }] })

    reports.length = 0
    await receiver.inbox.deadLetters.replay(deadLetter?.key ?? '')
    await receiver.close()
    expect(outcomes()[0]).toBe('bad 1 retried')
    expect(outcomes().at(-1)).toBe('bad 5 dead-lettered')
  })

  test('is passed to onError each time, with willRetry', async () => {
    const { receiver, handled } = receiverWithReports({ retry: { attempts: 2, baseMs: 1 } })
    const calls: [unknown, FailedRun][] = []
    receiver
      .onAny(() => Promise.reject('no'), { name: 'h' })
      .onError((error, handling) => void calls.push([error, handling]))
    await handled()
    expect(calls).toMatchObject([
      ['no', { handler: 'h', attempt: 1, willRetry: true, event: { type: 'encoding.finished' } }],
      ['no', { handler: 'h', attempt: 2, willRetry: false }],
    ])
  })

  test('does not hold up the next event of its media', async () => {
    const { receiver, handled } = receiverWithReports({ retry: { attempts: 2, baseMs: 20 } })
    vi.spyOn(Math, 'random').mockReturnValueOnce(0.99)
    const seen: string[] = []
    receiver.onAny(({ emittedAt }, { attempt }) => {
      seen.push(`${emittedAt?.getUTCFullYear()} ${attempt}`)
      if (emittedAt?.getUTCFullYear() === 2025 && attempt === 1) throw new Error('no')
    })
    await Promise.all([
      handled({ emitted_at: '2025-01-01T00:00:00Z' }),
      handled({ emitted_at: '2026-01-01T00:00:00Z' }),
    ])
    expect(seen).toEqual(['2025 1', '2026 1', '2025 2'])
  })

  test("is answered 500 with ack: 'handled', and only it runs in the sender's retry", async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ ack: 'handled' })
    receiver.onAny(() => {}, { name: 'fine' })
    receiver.onAny((_event, { attempt }) => attempt > 1 || Promise.reject(new Error('secret')), { name: 'flaky' })
    const first = await handled()
    expect(first).toMatchObject({ status: 500, outcome: 'handler_failed' })
    expect(first.body).not.toContain('secret')
    expect(await handled()).toMatchObject({ status: 200, outcome: 'handled' })
    expect(await handled()).toMatchObject({ status: 200, outcome: 'duplicate' })
    expect(outcomes()).toEqual(['fine 1 handled', 'flaky 1 failed', 'flaky 2 handled'])
  })
})

describe('the receiver survives', () => {
  const throws = () => {
    throw new Error('broken')
  }
  const rejects = async () => throws()
  const throwing: Logger = { debug: throws, info: throws, warn: throws, error: throws }

  test.each([
    ['throws', throws],
    ['rejects', rejects],
  ])('an onError that %s', async (_, onError) => {
    const error = vi.fn()
    const { receiver, handled, outcomes } = receiverWithReports({ logger: { ...silent, error } })
    const others: unknown[] = []
    receiver.onAny((_event, { attempt }) => attempt > 1 || Promise.reject('no'), { name: 'h' })
    receiver.onError(onError).onError((thrown) => void others.push(thrown))
    await handled()
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 handled'])
    expect(others).toEqual(['no'])
    expect(error).toHaveBeenCalledWith({ err: expect.objectContaining({ message: 'broken' }) }, 'onError threw')
  })

  test.each([
    ['throw', throws],
    ['reject', rejects],
  ])('hooks that %s', async (_, hook) => {
    const error = vi.fn()
    const { receiver, handled } = receiverWithReports({
      hooks: { delivery: hook, handling: hook },
      logger: { ...silent, error },
    })
    let runs = 0
    receiver.onAny(() => ++runs > 1 || Promise.reject('no'))
    expect((await handled()).outcome).toBe('accepted')
    expect((await handled()).outcome).toBe('duplicate')
    expect(runs).toBe(2)
    expect(new Set(error.mock.calls.map(([, message]) => message))).toEqual(
      new Set(['the delivery hook threw', 'the handling hook threw']),
    )
  })

  test('a logger that throws', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ logger: throwing })
    receiver.onAny((_event, { attempt }) => attempt > 1 || Promise.reject('no'), { name: 'h' })
    receiver.onError(throws)
    expect((await handled()).outcome).toBe('accepted')
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 handled'])
  })

  test('a logger and hooks that all throw', async () => {
    const { receiver, handled } = receiverWithReports({
      logger: throwing,
      hooks: { delivery: throws, handling: rejects },
      retry: { attempts: 1 },
    })
    receiver.onAny(throws).onError(rejects)
    expect((await handled()).outcome).toBe('accepted')
    expect(await receiver.inbox.deadLetters.list()).toHaveLength(1)
  })
})

describe('an attempt that the inbox aborts', () => {
  test('keeps the name of a handler that succeeded before and is no longer registered', async () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(undefined, () => Promise.reject(new Error('no')), { name: 'failing' })
    const reporter = new Reporter({}, safeLogger(silent))
    const retry = { attempts: 5, delayAfter: () => 0 }
    const handle = createHandle({ registry, reporter, logger: silent, handlerTimeoutMs: 1_000, retry })
    const attempt = { number: 1, completed: ['removed'], aborted: false, signal: new AbortController().signal }
    expect(await handle(eventOf('one'), attempt)).toMatchObject({ status: 'retry', completed: ['removed'] })
  })

  test('starts no other handler, and returns those that had completed before: one that is told to stop may leave work undone', async () => {
    const registry = new HandlerRegistry(mediaService)
    const controller = new AbortController()
    const { promise: started, resolve: start } = signalled()
    const { promise: end, resolve: finish } = signalled()
    registry.add(undefined, () => {}, { name: 'first' })
    registry.add(undefined, () => start() ?? end, { name: 'running' })
    registry.add(undefined, () => {}, { name: 'earlier' })
    registry.add(undefined, () => expect.unreachable(), { name: 'left' })
    const options = {
      registry,
      reporter: new Reporter({}, safeLogger(silent)),
      logger: silent,
      handlerTimeoutMs: 1_000,
    }
    const handle = createHandle({ ...options, retry: { attempts: 5, delayAfter: () => 0 } })
    const attempt = { number: 2, completed: ['earlier'], aborted: false, signal: controller.signal }
    const result = handle(eventOf('one'), attempt)
    await started
    attempt.aborted = true
    finish()
    const { status, completed } = (await result) as { status: string; completed: string[] }
    expect(status).toBe('retry')
    expect(completed.toSorted()).toEqual(['earlier', 'first'])
  })
})
