import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Closing } from '../../src/inbox/closing.ts'
import { Deadlines } from '../../src/internal/deadlines.ts'
import { within } from '../../src/internal/timers.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const later = <T>(ms: number, end: () => T) => new Promise<T>((resolve) => setTimeout(() => resolve(end()), ms))

describe('within', () => {
  test('resolves or rejects as the promise does, and leaves no timer', async () => {
    expect(await within(50, Promise.resolve('in time'), () => 'late')).toBe('in time')
    await expect(within(50, Promise.reject(new Error('no')), () => 'late')).rejects.toThrow('no')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('calls `late` once the time is up, and gives its result or its error', async () => {
    const late = vi.fn(() => 'late')
    const slow = within(50, new Promise(() => {}), late)
    const failing = within(50, new Promise(() => {}), () => {
      throw new Error('too late')
    })
    const rejected = expect(failing).rejects.toThrow('too late')
    await vi.advanceTimersByTimeAsync(49)
    expect(late).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(await slow).toBe('late')
    await rejected
  })

  test('does not call `late` for a promise that was in time', async () => {
    const late = vi.fn()
    const result = within(
      50,
      later(20, () => 'in time'),
      late,
    )
    await vi.advanceTimersByTimeAsync(100)
    expect(await result).toBe('in time')
    expect(late).not.toHaveBeenCalled()
  })
})

describe('deadlines', () => {
  /** Adds runs that note when they expire, in ms from now. */
  function subject(timeoutMs: number) {
    const deadlines = new Deadlines(timeoutMs)
    const expired: string[] = []
    const start = performance.now()
    const add = (name: string) => {
      const run = {
        startedAt: performance.now(),
        expire: () => void expired.push(`${name} after ${performance.now() - start}`),
      }
      deadlines.add(run)
      return () => deadlines.remove(run)
    }
    return { add, expired }
  }

  test('expire each run after its own time, on one timer', async () => {
    const { add, expired } = subject(100)
    add('first')
    await vi.advanceTimersByTimeAsync(40)
    add('second')
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(60)
    expect(expired).toEqual(['first after 100'])
    await vi.advanceTimersByTimeAsync(40)
    expect(expired).toEqual(['first after 100', 'second after 140'])
    expect(vi.getTimerCount()).toBe(0)
    add('third')
    await vi.advanceTimersByTimeAsync(100)
    expect(expired.at(-1)).toBe('third after 240')
  })

  test('expire no run that was removed, and none twice', async () => {
    const { add, expired } = subject(100)
    const remove = add('removed')
    add('left')
    remove()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(expired).toEqual(['left after 100'])
  })

  test('stay on one timer when each run that expires is followed by another', async () => {
    const deadlines = new Deadlines(100)
    const expired: string[] = []
    const add = (name: string) => {
      const startedAt = performance.now()
      const expire = () => {
        expired.push(`${name} after ${performance.now() - startedAt}`)
        add(name)
      }
      deadlines.add({ startedAt, expire })
    }
    add('first')
    await vi.advanceTimersByTimeAsync(40)
    add('second')
    for (let round = 1; round <= 20; round++) {
      await vi.advanceTimersByTimeAsync(100)
      expect(vi.getTimerCount()).toBe(1)
      expect(expired).toHaveLength(2 * round)
    }
    expect(new Set(expired)).toEqual(new Set(['first after 100', 'second after 100']))
  })

  test('expire a run whose timer fires a fraction of a millisecond early', async () => {
    const { add, expired } = subject(100)
    await vi.advanceTimersByTimeAsync(0.5)
    add('one')
    await vi.advanceTimersByTimeAsync(100)
    expect(expired).toHaveLength(1)
  })

  test('do not keep the process alive', () => {
    vi.useRealTimers()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    new Deadlines(100).add({ startedAt: 0, expire() {} })
    const [timer] = timers.mock.results.map(({ value }) => value as NodeJS.Timeout)
    timers.mockRestore()
    expect(timer?.hasRef()).toBe(false)
    clearTimeout(timer)
  })
})

describe('closing', () => {
  test('runs once, with the time limit of the first call, which is 10 s by default', async () => {
    const run = vi.fn(async (timeoutMs: number) => ({ timeoutMs }))
    const closing = new Closing('closed', run)
    expect(closing.hasStarted).toBe(false)
    expect(() => closing.checkOpen()).not.toThrow()
    const report = closing.start()
    expect(closing.start({ timeoutMs: 5 })).toBe(report)
    expect(await report).toEqual({ timeoutMs: 10_000 })
    expect(run).toHaveBeenCalledOnce()
    expect(closing.hasStarted).toBe(true)
    expect(() => closing.checkOpen()).toThrow(expect.objectContaining({ code: 'closing', message: 'closed' }))
  })

  test.each([-1, Number.NaN, 'soon'])('runs with 10 s, and then rejects a time limit of %s', async (timeoutMs) => {
    const run = vi.fn(async () => {})
    const closing = new Closing('closed', run)
    const closed = closing.start({ timeoutMs: timeoutMs as number })
    expect(run).toHaveBeenCalledWith(10_000)
    await expect(closed).rejects.toMatchObject({ code: 'invalid_option' })
  })

  test('may have no time at all', async () => {
    expect(await new Closing('closed', async (timeoutMs) => timeoutMs).start({ timeoutMs: 0 })).toBe(0)
  })
})
