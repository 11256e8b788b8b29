import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Closing } from '../../src/inbox/closing.ts'
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

  test('waits for a thenable whose then returns nothing, and leaves no timer behind', async () => {
    const thenable = { then: (resolve: (value: string) => void) => resolve('in time') } as unknown as Promise<string>
    expect(await within(50, thenable, () => 'late')).toBe('in time')
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
