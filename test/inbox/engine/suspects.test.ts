import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { suspicion } from '../../../src/inbox/engine/suspects.ts'
import { beginSearch, jobOf, keysOf } from './suspect-search.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('the suspects of a crash', () => {
  test('are the first event of each media item that was due, as many as run at a time', () => {
    const retrying = jobOf('retrying')
    retrying.state = 'retrying'
    const ofOneItem = [jobOf('a', { mediaId: 'm' }), jobOf('behind a', { mediaId: 'm' })]
    const jobs = [retrying, ...ofOneItem, jobOf('b'), jobOf('c')]
    expect(keysOf(jobs.filter(suspicion(2)))).toEqual(['a', 'b'])
    expect(keysOf(jobs.filter(suspicion(9)))).toEqual(['a', 'b', 'c'])
  })

  test('are also those that were suspects before', () => {
    const jobs = [jobOf('a'), jobOf('b'), jobOf('c', { crashes: 1 })]
    expect(keysOf(jobs.filter(suspicion(1)))).toEqual(['a', 'c'])
  })
})

describe('the search for the event that made a process crash', () => {
  test('runs each suspect alone, and the others once all suspects have been handled', async () => {
    const [a, b, other] = [jobOf('a'), jobOf('b'), jobOf('other')]
    const { enter, leave, started, alone, over } = beginSearch({ suspects: [a, b] })
    enter(a, b, other)
    expect(await started()).toEqual(['a'])
    expect([a.state, b.state, other.state]).toEqual(['running', 'waiting', 'waiting'])
    leave(a)
    expect(await started()).toEqual(['a', 'b'])
    expect(over).toEqual([])
    leave(b)
    expect(await started()).toEqual(['a', 'b', 'other'])
    expect(over).toEqual([true])
    expect(alone).toEqual(['a', undefined, 'b', undefined])
  })

  test('lets others run while no suspect has a slot, and then waits for their end', async () => {
    const [a, other, another] = [jobOf('a'), jobOf('other'), jobOf('another')]
    const { enter, leave, started, alone } = beginSearch({ suspects: [a] })
    enter(other)
    expect(await started()).toEqual(['other'])
    enter(a, another)
    expect(await started()).toEqual(['other'])
    leave(other)
    expect(await started()).toEqual(['other', 'a'])
    expect(alone).toEqual(['a'])
  })

  test('continues until every event is considered, and runs a later suspect alone', async () => {
    const [a, b, other, another] = [jobOf('a'), jobOf('b'), jobOf('other'), jobOf('another')]
    const { consider, allConsidered, enter, leave, started, over } = beginSearch({ suspects: [a], isReading: true })
    enter(a)
    await started()
    leave(a)
    enter(other)
    expect(await started()).toEqual(['a', 'other'])
    consider(b)
    enter(b, another)
    expect(await started()).toEqual(['a', 'other'])
    leave(other)
    expect(await started()).toEqual(['a', 'other', 'b'])
    leave(b)
    expect(await started()).toEqual(['a', 'other', 'b', 'another'])
    expect(over).toEqual([])
    allConsidered()
    await started()
    expect(over).toEqual([true])
  })

  test('runs a suspect that has made no process crash before one that has, and before the others', async () => {
    const [crashed, fresh] = [jobOf('a', { crashes: 1 }), jobOf('b')]
    const { enter, started } = beginSearch({ suspects: [crashed, fresh] })
    enter(crashed, jobOf('other'), fresh)
    expect(await started()).toEqual(['b'])
  })

  test('runs a suspect that has made a process crash once every event is considered: others go first', async () => {
    const [crashed, fresh, other] = [jobOf('a', { crashes: 1 }), jobOf('b'), jobOf('other')]
    const beginning = { suspects: [crashed], crashes: 2, isReading: true }
    const { consider, allConsidered, enter, leave, started } = beginSearch(beginning)
    enter(crashed, other)
    expect(await started()).toEqual(['other'])
    leave(other)
    expect(await started(10_000)).toEqual(['other'])
    consider(fresh)
    enter(fresh)
    allConsidered()
    expect(await started()).toEqual(['other', 'b'])
    leave(fresh)
    expect(await started()).toEqual(['other', 'b', 'a'])
  })

  test('lets the others go first if each suspect has made a process crash before', async () => {
    const [worse, bad] = [jobOf('worse', { crashes: 2 }), jobOf('bad', { crashes: 1 })]
    const [other, another] = [jobOf('other'), jobOf('another')]
    const { enter, leave, started } = beginSearch({ suspects: [worse, bad], crashes: 3 })
    enter(worse, bad, other)
    expect(await started()).toEqual(['other'])
    enter(another)
    expect(await started()).toEqual(['other', 'another'])
    leave(other)
    expect(await started(100)).toEqual(['other', 'another'])
    leave(another)
    expect(await started()).toEqual(['other', 'another', 'bad'])
    leave(bad)
    expect(await started()).toEqual(['other', 'another', 'bad', 'worse'])
  })

  test('does not wait for a suspect that has ended meanwhile', async () => {
    const [a, other] = [jobOf('a'), jobOf('other')]
    const { enter, started, over } = beginSearch({ suspects: [a] })
    a.end('failed')
    enter(other)
    expect(await started()).toEqual(['other'])
    expect(over).toEqual([true])
  })

  test('does not change the state of an event that the inbox has given up', async () => {
    const a = jobOf('a')
    const { enter, started } = beginSearch()
    enter(a)
    a.end('closing')
    expect(await started()).toEqual(['a'])
    expect(a.state).toBe('waiting')
  })

  test.each([false, true])(
    'starts nothing more once it is stopped (the previous process may be alive: %s)',
    async (mayBeAlive) => {
      const [a, b] = [jobOf('a'), jobOf('b')]
      const { enter, leave, started, stop, over } = beginSearch({ suspects: [a, b], mayBeAlive })
      enter(a, b)
      const before = await started()
      stop()
      leave(a)
      enter(jobOf('other'))
      expect(await started(60_000)).toEqual(before)
      expect(over).toEqual([])
    },
  )
})
