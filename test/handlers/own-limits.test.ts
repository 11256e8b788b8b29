import { afterEach, describe, expect, test, vi } from 'vitest'
import { type HandlerOptions, RetryAfter } from '../../src/index.ts'
import { receiverWithReports } from './reported-receiver.ts'

afterEach(() => void vi.restoreAllMocks())

const fails = () => Promise.reject(new Error('no'))
const hangs = () => new Promise(() => {})

describe('timeoutMs', () => {
  test('ends the runs of its handler, and leaves those of the others their own time', async () => {
    const { receiver, handled, reports } = receiverWithReports({ retry: { attempts: 1 } })
    const slow = () => new Promise((resolve) => setTimeout(resolve, 40))
    receiver.onAny(hangs, { name: 'hangs', timeoutMs: 10 }).onAny(hangs, { name: 'also hangs', timeoutMs: 20 })
    receiver.onAny(slow, { name: 'slow' })
    await handled()
    const timeout = expect.objectContaining({ code: 'timeout' })
    expect(reports).toMatchObject([
      { handler: 'hangs', outcome: 'dead-lettered', error: timeout },
      { handler: 'also hangs', outcome: 'dead-lettered', error: timeout },
      { handler: 'slow', outcome: 'handled' },
    ])
    expect(reports[0]?.durationMs).toBeGreaterThanOrEqual(8)
    expect(reports[1]?.durationMs).toBeGreaterThanOrEqual(18)
  })

  test('can be longer than handlerTimeoutMs, in runs at the same time', async () => {
    const { receiver, handled, reports } = receiverWithReports({ handlerTimeoutMs: 20, retry: { attempts: 1 } })
    const until = (ms: number) => () => new Promise((resolve) => setTimeout(resolve, ms))
    receiver.on('encoding.finished', until(60), { name: 'patient', timeoutMs: 60_000 })
    receiver.on('encoding.finished', hangs, { name: 'hasty' })
    await Promise.all(['a', 'b', 'c'].map((media_id) => handled({ media_id })))
    const outcomes = (name: string) => reports.filter(({ handler }) => handler === name).map(({ outcome }) => outcome)
    expect(outcomes('patient')).toEqual(Array(3).fill('handled'))
    expect(outcomes('hasty')).toEqual(Array(3).fill('dead-lettered'))
  })
})

describe('the retry of a handler', () => {
  test('takes the place of the one of the receiver', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ retry: { attempts: 5, baseMs: 1 } })
    receiver.onAny(fails, { name: 'once', retry: { attempts: 1 } })
    await handled()
    expect(outcomes()).toEqual(['once 1 dead-lettered'])
  })

  test('keeps the options of the receiver that it does not give', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { receiver, handled, reports } = receiverWithReports({ retry: { attempts: 4, baseMs: 2, maxMs: 4 } })
    receiver.onAny(fails, { retry: { baseMs: 6, attempts: undefined } as HandlerOptions['retry'] & object })
    await handled()
    expect(reports.map(({ retryInMs }) => retryInMs)).toEqual([2, 2, 2, undefined])
  })

  test('keeps the event going while it has attempts left, without the handlers that have none', async () => {
    const { receiver, handled, outcomes } = receiverWithReports({ retry: { attempts: 2, baseMs: 1 } })
    receiver.onAny(fails, { name: 'once', retry: { attempts: 1 } })
    receiver.onAny(fails, { name: 'twice' })
    receiver.onAny((_event, { attempt }) => attempt === 4 || fails(), { name: 'patient', retry: { attempts: 9 } })
    await handled()
    expect(outcomes()).toEqual([
      'once 1 dead-lettered',
      'twice 1 retried',
      'patient 1 retried',
      'twice 2 dead-lettered',
      'patient 2 retried',
      'patient 3 retried',
      'patient 4 handled',
    ])
    const [deadLetter] = await receiver.inbox.deadLetters.list()
    const failures = ['once', 'twice'].map((handler) => ({ handler, message: 'Error: no' }))
    expect(deadLetter).toMatchObject({ attempts: 4, completed: ['patient'] })
    expect(deadLetter?.failures).toEqual(failures)
    expect(
      deadLetter?.failedAttempts?.map((each) => each.failures.map(({ handler, final }) => [handler, final])),
    ).toEqual([
      [
        ['once', true],
        ['twice', undefined],
        ['patient', undefined],
      ],
      [
        ['once', true],
        ['twice', true],
        ['patient', undefined],
      ],
      [
        ['once', true],
        ['twice', true],
        ['patient', undefined],
      ],
      [
        ['once', undefined],
        ['twice', undefined],
      ],
    ])
  })

  test('gives the pause, the longest of those of the handlers that failed', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { receiver, handled, reports } = receiverWithReports({ retry: { attempts: 2, baseMs: 4 } })
    const pauses = [{ baseMs: 30 }, { baseMs: 20 }]
    for (const retry of pauses) receiver.onAny(fails, { retry })
    receiver.onAny(fails)
    await handled()
    expect(reports.map(({ retryInMs }) => retryInMs).slice(0, 3)).toEqual([15, 15, 15])
  })

  test('is overridden by a RetryAfter', async () => {
    const { receiver, handled, reports } = receiverWithReports()
    receiver.onAny(() => Promise.reject(new RetryAfter(3)), {
      retry: { attempts: 2, baseMs: 3_600_000, maxMs: 3_600_000 },
    })
    await handled()
    expect(reports.map(({ retryInMs }) => retryInMs)).toEqual([3, undefined])
  })
})

test.each<[string, unknown, string]>([
  ['timeoutMs', { timeoutMs: 0 }, 'on: timeoutMs must be a whole number'],
  ['timeoutMs', { timeoutMs: '1 s' }, 'on: timeoutMs must be a whole number'],
  ['retry', { retry: 3 }, 'the options must be an object'],
  ['retry', { retry: null }, 'the options must be an object'],
  ['retry', { retry: { attempts: 0 } }, 'retry: attempts must be a whole number'],
  ['retry', { retry: { attemps: 3 } }, 'retry: there is no option attemps'],
])('%s cannot be %j', (_, options, message) => {
  const { receiver } = receiverWithReports()
  const invalid = expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(message) })
  expect(() => receiver.onAny(fails, options as HandlerOptions)).toThrow(invalid)
  expect(() => receiver.on('encoding.finished', fails, options as HandlerOptions)).toThrow(invalid)
})

test("retry has no effect with ack 'handled', and says so", () => {
  const { receiver } = receiverWithReports({ ack: 'handled' })
  const message = "on: retry has no effect with ack 'handled'"
  expect(() => receiver.onAny(fails, { retry: {} })).toThrow(
    expect.objectContaining({ code: 'invalid_option', message }),
  )
  expect(() => receiver.onAny(fails, { timeoutMs: 10 })).not.toThrow()
})
