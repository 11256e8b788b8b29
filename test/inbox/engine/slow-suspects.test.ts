import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { beginSearch, jobOf } from './suspect-search.ts'

beforeEach(() => {
  vi.useFakeTimers()
  // This is the state after some time of work.
  vi.advanceTimersByTime(100_000)
})
afterEach(() => void vi.useRealTimers())

describe('the search for the event that made a process crash', () => {
  test('waits until the previous process has noticed that it has to stop, if that may be alive', async () => {
    const a = jobOf('a')
    const { enter, started } = beginSearch({ suspects: [a], mayBeAlive: true })
    enter(a)
    expect(await started(740)).toEqual([])
    expect(await started(20)).toEqual(['a'])
  })

  test('lets the others go first for 2 s at most', async () => {
    const [suspect, other] = [jobOf('suspect', { crashes: 1 }), jobOf('other')]
    const { enter, leave, started } = beginSearch({ suspects: [suspect] })
    enter(suspect, other)
    expect(await started(2_100)).toEqual(['other'])
    enter(jobOf('another'))
    expect(await started(100)).toEqual(['other'])
    leave(other)
    expect(await started()).toEqual(['other', 'suspect'])
  })

  test.each([
    [1, 1_000],
    [2, 2_000],
    [4, 8_000],
    [6, 32_000],
    [9, 32_000],
  ])('ends after crash number %i when suspects have run for %i ms in all', async (crashes, budgetMs) => {
    const [a, b] = [jobOf('a'), jobOf('b')]
    const { enter, leave, started, over, alone } = beginSearch({ suspects: [a, b], crashes })
    enter(a, b, jobOf('other'))
    await started(600)
    leave(a)
    expect(await started(budgetMs - 650)).toEqual(['a', 'b'])
    expect(over).toEqual([])
    expect(await started(100)).toEqual(['a', 'b', 'other'])
    expect(over).toEqual([false])
    expect(alone.at(-1)).toBe(undefined)
    leave(b)
    await started(60_000)
    expect(over).toEqual([false])
  })

  test('starts a suspect once it is recorded, and no other one meanwhile', async () => {
    const [a, b] = [jobOf('a'), jobOf('b')]
    const { enter, started, alone } = beginSearch({ suspects: [a, b], recordMs: 50 })
    enter(a)
    expect(await started(40)).toEqual([])
    enter(b)
    expect(await started(20)).toEqual(['a'])
    expect(await started(100)).toEqual(['a'])
    expect(alone).toEqual(['a'])
  })

  test('starts and records nothing more when it is stopped while a suspect is recorded', async () => {
    const a = jobOf('a')
    const { enter, started, alone, stop } = beginSearch({ suspects: [a], recordMs: 50 })
    enter(a)
    await started(20)
    stop()
    expect(await started(60_000)).toEqual([])
    expect(alone).toEqual(['a'])
  })

  test('is not over when it is stopped while its end is recorded', async () => {
    const a = jobOf('a')
    const { enter, started, over, stop } = beginSearch({ suspects: [a], recordMs: 50 })
    enter(a, jobOf('other'))
    await started(1_010)
    stop()
    expect(await started(1_000)).toEqual(['a'])
    expect(over).toEqual([])
  })
})
