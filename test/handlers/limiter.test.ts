import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Rate } from '../../src/handlers/handler.ts'
import { Limiter } from '../../src/handlers/limits.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const { signal } = new AbortController()

/** Takes a permit that must be free. */
function start(limiter: Limiter): void {
  const permit = limiter.enter()
  expect(permit.isGranted).toBe(true)
  limiter.start(permit)
}

/** Makes a limiter whose turns start as they come, and notes when (ms). */
function subject(limits: ConstructorParameters<typeof Limiter>[0]) {
  const limiter = new Limiter(limits)
  const begunAt = performance.now()
  const starts: number[] = []
  const ask = () => {
    const permit = limiter.enter()
    const begin = () => {
      limiter.start(permit)
      starts.push(performance.now() - begunAt)
    }
    if (permit.isGranted) begin()
    else void permit.next(signal).then(begin)
    return permit
  }
  return { limiter, starts, ask }
}

/** The highest number of starts in any time of `ms`. */
const mostWithin = (ms: number, starts: readonly number[]) =>
  Math.max(...starts.map((from) => starts.filter((at) => at >= from && at < from + ms).length))

describe('a rate', () => {
  test('spaces the starts of a backlog evenly', async () => {
    const { starts, ask } = subject({ rate: '10/s' })
    for (let runs = 0; runs < 40; runs++) ask()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(starts).toHaveLength(40)
    expect(starts.slice(0, 3)).toEqual([0, 80, 180])
    expect(mostWithin(1_000, starts)).toBe(10)
    // In ten seconds of work, nothing is lost to the limit of each second.
    expect(starts[39]).toBe(3_880)
  })

  test('allows no burst after idle time', async () => {
    const { starts, ask } = subject({ rate: '10/s' })
    await vi.advanceTimersByTimeAsync(60_000)
    for (let runs = 0; runs < 20; runs++) ask()
    expect(starts).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(999)
    expect(starts).toHaveLength(10)
  })

  test.each<[Rate, number]>([
    ['1/h', 3_600_000],
    ['6/min', 10_000],
    ['90/min', 60_000 / 90],
  ])('of %s leaves %d ms between starts', async (rate, intervalMs) => {
    const { starts, ask } = subject({ rate })
    for (let runs = 0; runs < 4; runs++) ask()
    await vi.advanceTimersByTimeAsync(3 * intervalMs + 10)
    const spaces = starts.slice(1).map((at, index) => at - (starts[index] as number))
    expect(spaces).toHaveLength(3)
    expect(Math.min(...spaces)).toBeGreaterThanOrEqual(intervalMs - 21)
    expect(mostWithin(intervalMs, starts.slice(1))).toBe(1)
  })

  test('of thousands in a second is reached, and not exceeded, with timers of a millisecond', async () => {
    const { starts, ask } = subject({ rate: '5000/s' })
    for (let runs = 0; runs < 15_000; runs++) ask()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(starts.length).toBeGreaterThan(14_900)
    const perSecond = (from: number) => starts.filter((at) => at >= from && at < from + 1_000).length
    expect(Math.max(...[0, 250, 500, 1_000, 1_700].map(perSecond))).toBeLessThanOrEqual(5_000)
  })

  test('is kept by late timers: what they missed is made up for, within the limit of a second', async () => {
    const { starts, ask } = subject({ rate: '10/s' })
    for (let runs = 0; runs < 1_000; runs++) ask()
    // Each timer is 3 ms late.
    for (let turns = 0; turns < 1_000; turns++) await vi.advanceTimersByTimeAsync(103 - (turns % 2))
    expect(starts).toHaveLength(1_000)
    expect(mostWithin(1_000, starts)).toBeLessThanOrEqual(10)
  })

  test('lets no newcomer pass runs whose timer is late', () => {
    const { starts, ask } = subject({ rate: '10/s' })
    ask()
    ask()
    vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000)
    ask()
    expect(starts).toHaveLength(1)
    vi.restoreAllMocks()
  })

  test('spends nothing on runs that leave', async () => {
    const { limiter, starts, ask } = subject({ rate: '1/s' })
    ask()
    const runs = Array.from({ length: 5 }, ask)
    for (const run of runs.slice(0, 4)) limiter.leave(run)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(starts).toHaveLength(2)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('leaves no timer once nothing waits', () => {
    const { limiter, ask } = subject({ rate: '1/h' })
    ask()
    const run = ask()
    expect(vi.getTimerCount()).toBe(1)
    limiter.leave(run)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('calls one run at a time, however long it waits for its slot', async () => {
    const limiter = new Limiter({ rate: '10/s' })
    const called: number[] = []
    start(limiter)
    const turns = [0, 1, 2].map(() => limiter.enter())
    for (const [number, permit] of turns.entries()) void permit.next(signal).then(() => called.push(number))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(called).toEqual([0])
    limiter.start(turns[0] as (typeof turns)[0])
    await vi.advanceTimersByTimeAsync(79)
    expect(called).toEqual([0])
    await vi.advanceTimersByTimeAsync(1)
    expect(called).toEqual([0, 1])
  })
})

describe('concurrency', () => {
  test('frees a permit when a handler returns, throws, resolves or rejects', async () => {
    const limiter = new Limiter({ concurrency: 1 })
    const called: string[] = []
    const handlers: Record<string, () => unknown> = {
      returns: () => 7,
      throws() {
        throw new Error('no')
      },
      resolves: async () => {},
      rejects: () => Promise.reject(new Error('no')),
    }
    start(limiter)
    limiter.around(() => {})(undefined as never, undefined as never)
    for (const [name, handler] of Object.entries(handlers)) {
      start(limiter)
      const next = limiter.enter()
      expect(next.isGranted).toBe(false)
      void next.next(signal).then(() => called.push(name))
      await Promise.resolve()
        .then(() => limiter.around(handler)(undefined as never, undefined as never))
        .catch(() => {})
      await vi.advanceTimersByTimeAsync(0)
      expect(called.at(-1)).toBe(name)
      limiter.leave(next)
    }
  })

  test('calls `then` of what a handler returns once: some queries run at each call', async () => {
    const limiter = new Limiter({ concurrency: 1 })
    const query = { then: vi.fn((resolve: (value: unknown) => void) => resolve(1)) }
    start(limiter)
    await limiter.around(() => query)(undefined as never, undefined as never)
    expect(query.then).toHaveBeenCalledTimes(1)
  })
})

describe('the permit of an event that is released', () => {
  const parked = (limiter: Limiter, count: number) => {
    start(limiter)
    for (let runs = 0; runs < count; runs++) limiter.enter()
  }

  test('is behind half of those that wait, and behind those released before', () => {
    const limiter = new Limiter({ rate: '10/s' })
    parked(limiter, 100)
    const turns = Array.from({ length: 1_000 }, () => limiter.releaseMs())
    expect(turns[0]).toBeGreaterThanOrEqual(5_000)
    expect(turns[0]).toBeLessThanOrEqual(5_500)
    // A little sooner than a thousand runs take.
    expect(turns[999]).toBeGreaterThanOrEqual(95_000)
    expect(turns[999]).toBeLessThanOrEqual(96_000)
    expect(turns).toEqual(turns.toSorted((a, b) => a - b))
    // A few at a time are due together.
    expect(new Set(turns).size).toBeLessThan(230)
  })

  test('is in ten minutes at the latest', () => {
    const limiter = new Limiter({ rate: '1/h' })
    parked(limiter, 100)
    for (let events = 0; events < 10; events++) expect(limiter.releaseMs()).toBeLessThanOrEqual(601_000)
  })

  test('follows from the duration of runs without a rate', async () => {
    const limiter = new Limiter({ concurrency: 2 })
    for (let runs = 0; runs < 60; runs++) {
      start(limiter)
      const run = limiter.around(() => new Promise((resolve) => setTimeout(resolve, 200)))
      void run(undefined as never, undefined as never)
      await vi.advanceTimersByTimeAsync(200)
    }
    parked(limiter, 100)
    const turnMs = limiter.releaseMs()
    expect(turnMs).toBeGreaterThan(4_500)
    expect(turnMs).toBeLessThan(6_000)
  })
})
