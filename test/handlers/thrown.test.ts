import { afterEach, describe, expect, test, vi } from 'vitest'
import { PermanentFailure, RetryAfter } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'
import { receiverWithReports } from './reported-receiver.ts'

afterEach(() => void vi.useRealTimers())

const never = () => {
  throw new PermanentFailure('there is no film')
}

/** Throws the error of each attempt, and succeeds once there are no more. */
const failing =
  (...errors: readonly unknown[]) =>
  (_event: unknown, { attempt }: { attempt: number }) => {
    if (attempt <= errors.length) throw errors[attempt - 1]
  }

describe('a PermanentFailure', () => {
  test('has a name, the reason and its cause', () => {
    const cause = new Error('404')
    const error = new PermanentFailure('there is no film', { cause })
    expect(error).toBeInstanceOf(Error)
    expect([error.name, error.message, error.cause]).toEqual(['PermanentFailure', 'there is no film', cause])
    expect(new PermanentFailure('no')).not.toHaveProperty('cause')
  })

  test('makes the event a dead letter after its first attempt, in which the other handlers still run', async () => {
    const { receiver, handled, outcomes } = receiverWithReports()
    const willRetry: boolean[] = []
    receiver
      .onAny(never, { name: 'never' })
      .onAny(() => {}, { name: 'fine' })
      .onError((_error, run) => void willRetry.push(run.willRetry))
    await handled()
    expect(outcomes()).toEqual(['never 1 dead-lettered', 'fine 1 handled'])
    expect(willRetry).toEqual([false])
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    const failures = [{ handler: 'never', message: 'PermanentFailure: there is no film' }]
    expect(deadLetter).toMatchObject({ attempts: 1, completed: ['fine'], failures })
    expect(deadLetter?.failures).toEqual(failures)
  })

  test('is recognised if another copy of the package threw it', async () => {
    const { receiver, handled, outcomes } = receiverWithReports()
    const foreign = Object.assign(new Error('no'), {
      [Symbol.for('media-webhooks.retry-after')]: Number.POSITIVE_INFINITY,
    })
    receiver.onAny(failing(foreign), { name: 'foreign' })
    await handled()
    expect(outcomes()).toEqual(['foreign 1 dead-lettered'])
  })

  test.each([
    ['succeeds in the end', [new Error('no'), new Error('no')], 3, ['never']],
    ['fails until its last attempt', Array(5).fill(new Error('no')), 5, ['never', 'flaky']],
    ['also fails permanently in the end', [new Error('no'), new PermanentFailure('no')], 2, ['never', 'flaky']],
  ])('leaves the retries of another handler alone, which %s', async (_, errors, runs, failed) => {
    const { receiver, handled, outcomes } = receiverWithReports()
    receiver.onAny(never, { name: 'never' }).onAny(failing(...errors), { name: 'flaky' })
    await handled()
    expect(outcomes().filter((outcome) => outcome.startsWith('never'))).toEqual(['never 1 dead-lettered'])
    expect(outcomes().filter((outcome) => outcome.startsWith('flaky'))).toHaveLength(runs)
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    expect(deadLetter?.failures.map(({ handler }) => handler)).toEqual(failed)
    expect(deadLetter?.failures[0]).toEqual({ handler: 'never', message: 'PermanentFailure: there is no film' })
  })

  test('is not repeated when the next attempt is started by hand, and is after a replay', async () => {
    const { receiver, outcomes, reports } = receiverWithReports({ retry: { baseMs: 3_600_000, maxMs: 3_600_000 } })
    receiver.onAny(never, { name: 'never' }).onAny(failing(new Error('no')), { name: 'flaky' })
    const { key } = await deliver(receiver, samplePayload('encoding.finished')).then(async () => {
      await until(async () => (await receiver.inbox.stats()).retrying === 1)
      return (await receiver.inbox.events?.list())?.events[0] as { key: string }
    })
    await receiver.inbox.events?.retryNow(key)
    await until(async () => (await receiver.inbox.stats()).deadLetters === 1)
    expect(outcomes()).toEqual(['never 1 dead-lettered', 'flaky 1 retried', 'flaky 2 handled'])
    reports.length = 0
    await receiver.inbox.deadLetters.replay(key)
    await until(async () => (await receiver.inbox.stats()).deadLetters === 1)
    expect(outcomes()).toEqual(['never 1 dead-lettered'])
  })
})

describe('a RetryAfter', () => {
  test('has a name, its pause and its cause', () => {
    const cause = new Error('429 Too Many Requests')
    const error = new RetryAfter('90 s', { cause })
    expect(error).toBeInstanceOf(Error)
    expect([error.name, error.delayMs, error.cause]).toEqual(['RetryAfter', 90_000, cause])
    expect(error.message).toBe('the handler asked to retry after 90 s: 429 Too Many Requests')
    expect(new RetryAfter(0.5).delayMs).toBe(1)
    expect(new RetryAfter('24 d').delayMs).toBe(24 * 86_400_000)
    expect(new RetryAfter(0)).not.toHaveProperty('cause')
    expect(new RetryAfter(7, { cause: 429 }).message).toBe('the handler asked to retry after 7 ms')
  })

  test('takes a Date, also one in the past', () => {
    vi.useFakeTimers({ now: 1_000_000 })
    expect(new RetryAfter(new Date(1_060_000)).delayMs).toBe(60_000)
    expect(new RetryAfter(new Date(999_999)).delayMs).toBe(0)
  })

  test.each([
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    24 * 86_400_000 + 1,
    '90',
    'soon',
    '25 d',
    new Date(Number.NaN),
    new Date('9999-01-01'),
    undefined,
    null,
    {},
    9n,
  ])('cannot be made of %s', (delay) => {
    const invalid = { code: 'invalid_option', message: expect.stringContaining("'90 s'") }
    expect(() => new RetryAfter(delay as never)).toThrow(expect.objectContaining(invalid))
  })

  test('sets the pause before the next attempt, beyond the schedule, and counts as an attempt', async () => {
    const { receiver, handled, outcomes, reports } = receiverWithReports({
      retry: { attempts: 3, baseMs: 1, maxMs: 1 },
    })
    receiver.onAny(() => Promise.reject(new RetryAfter('25 ms')), { name: 'busy' })
    await handled()
    expect(outcomes()).toEqual(['busy 1 retried', 'busy 2 retried', 'busy 3 dead-lettered'])
    expect(reports.map(({ retryInMs }) => retryInMs)).toEqual([25, 25, undefined])
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    expect(deadLetter?.failures).toEqual([
      { handler: 'busy', message: 'RetryAfter: the handler asked to retry after 25 ms' },
    ])
  })

  test('retries before the backoff would, if the handler asks for a shorter pause', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ retry: { baseMs: 3_600_000, maxMs: 3_600_000 } })
    receiver.onAny(failing(new RetryAfter(0)), { name: 'busy' })
    await handled()
    expect(outcomes()).toEqual(['busy 1 retried', 'busy 2 handled'])
  })

  test.each([
    [
      [new RetryAfter(20), new RetryAfter(40), new RetryAfter(30)],
      [20, 40, 40],
    ],
    [
      [new Error('no'), new RetryAfter(40)],
      [expect.any(Number), 40],
    ],
    [
      [new RetryAfter(40), new PermanentFailure('no'), new Error('no')],
      [40, undefined, 40],
    ],
  ])('of several handlers is followed by the longest pause: %#', async (errors, pauses) => {
    const { receiver, handled, reports } = receiverWithReports()
    for (const error of errors) receiver.onAny(failing(error))
    const startedAt = performance.now()
    await handled()
    expect(reports.slice(0, errors.length).map(({ retryInMs }) => retryInMs)).toEqual(pauses)
    // Timers may be a millisecond early.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(38)
  })
})

test.each([new PermanentFailure('no'), new RetryAfter('2 h')])(
  "with ack 'handled', a %s is a failure as any other: the sender decides when the handler runs again",
  async (error) => {
    const { receiver, handled, outcomes } = receiverWithReports({ ack: 'handled' })
    let runs = 0
    receiver.onAny(() => {}, { name: 'fine' })
    receiver.onAny(() => (++runs === 1 ? Promise.reject(error) : undefined), { name: 'failing' })
    expect((await handled()).outcome).toBe('handler_failed')
    expect((await handled()).outcome).toBe('handled')
    expect(outcomes()).toEqual(['fine 1 handled', 'failing 1 failed', 'failing 2 handled'])
    expect(await receiver.inbox.deadLetters.list()).toEqual([])
  },
)
