import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RetryOptions, retrySchedule } from '../../src/handlers/retry.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { receiverWithReports } from './reported-receiver.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('the pauses between attempts', () => {
  test.each([
    [0, [0, 0, 0, 0]],
    [0.5, [500, 1_000, 2_000, 4_000]],
    [0.75, [750, 1_500, 3_000, 6_000]],
  ])('are a share of 1, 2, 4 and 8 s: with a random %d they are %j', async (random, pauses) => {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    const { receiver, reports } = receiverWithReports({ retry: {} })
    receiver.onAny(() => Promise.reject('no'))
    const { handled } = await deliver(receiver, samplePayload('encoding.finished'))
    let over = false
    void handled.then(() => {
      over = true
    })
    for (let attempt = 1; attempt <= 5; attempt++) {
      while (reports.length < attempt) await nextTurn()
      const pause = pauses[attempt - 1]
      if (pause === undefined) break
      if (pause > 0) {
        await vi.advanceTimersByTimeAsync(pause - 1)
        await nextTurn()
        expect(reports).toHaveLength(attempt)
      }
      await vi.advanceTimersByTimeAsync(1)
    }
    while (!over) await nextTurn()
    expect(reports.map(({ retryInMs }) => retryInMs)).toEqual([...pauses, undefined])
    expect(reports.map(({ outcome }) => outcome).at(-1)).toBe('dead-lettered')
  })

  test('stay within their bounds, and differ', () => {
    const { attempts, delayAfter } = retrySchedule()
    expect(attempts).toBe(5)
    for (const [attempt, most] of [
      [1, 1_000],
      [4, 8_000],
      [7, 60_000],
      [2_000, 60_000],
    ] as const) {
      const pauses = Array.from({ length: 200 }, () => delayAfter(attempt))
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...pauses)).toBeLessThan(most)
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(most / 2)
    }
  })

  test('follow the options', () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { attempts, delayAfter } = retrySchedule({ attempts: 3, baseMs: 10, maxMs: 30 })
    expect(attempts).toBe(3)
    expect([1, 2, 3, 4].map(delayAfter)).toEqual([5, 10, 15, 15])
  })

  test.each(['attempts', 'baseMs', 'maxMs'])('cannot be built with 0 as %s', (option) => {
    const invalid = expect.objectContaining({ code: 'invalid_option' })
    expect(() => retrySchedule({ [option]: 0 })).toThrow(invalid)
  })
})

test.each([
  [{ attempts: 0 }, 'retry: attempts must be a whole number'],
  [{ attemps: 3 }, 'retry: there is no option attemps'],
])('a schedule of %o cannot be made', (options, message) => {
  expect(() => retrySchedule(options as RetryOptions)).toThrow(message)
})
