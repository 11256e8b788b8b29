import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SqliteJob } from '../../../src/inbox/sqlite/job.ts'
import { Suspects, suspicion } from '../../../src/inbox/sqlite/suspects.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'

beforeEach(() => {
  vi.useFakeTimers()
  // As after some time of work.
  vi.advanceTimersByTime(100_000)
})
afterEach(() => void vi.useRealTimers())

/** Makes an event that was running alone during so many crashes. */
function jobOf(key: string, crashes = 0, mediaId = key) {
  const job = new SqliteJob(eventOf(key, mediaId), 1, undefined as never, { attempts: 0, completed: [], crashes })
  job.state = 'waiting'
  return job
}

const [a, b, c, other, another] = ['a', 'b', 'c', 'other', 'another'] as const

/** Begins a search after so many crashes, and lists what it does. */
function search(suspects: readonly SqliteJob[], crashes = 1, mayBeAlive = false, recordMs = 0, hasAll = true) {
  const alone: (string | undefined)[] = []
  const over: boolean[] = []
  const started: string[] = []
  const search = new Suspects({
    concurrency: 2,
    predecessor: { crashes, mayBeAlive },
    async recordAlone(job) {
      alone.push(job?.key)
      if (recordMs > 0) await new Promise((resolve) => setTimeout(resolve, recordMs))
    },
    onOver: (cleared) => void over.push(cleared),
  })
  for (const job of suspects) search.consider(job)
  if (hasAll) search.allConsidered()
  return {
    consider: (job: SqliteJob) => search.consider(job),
    allConsidered: () => search.allConsidered(),
    alone,
    over,
    enter(...jobs: SqliteJob[]) {
      for (const job of jobs) void search.enter(job).then(() => started.push(job.key))
    },
    leave: (job: SqliteJob) => search.leave(job),
    stop: () => search.stop(),
    async started(afterMs = 0) {
      await vi.advanceTimersByTimeAsync(afterMs)
      // A decision, and the record that it waits for.
      await vi.advanceTimersByTimeAsync(0)
      return started
    },
  }
}

describe('the suspects of a crash', () => {
  const keys = (jobs: readonly SqliteJob[]) => jobs.map(({ key }) => key)

  test('are the first event of each media that was due, as many as run at a time', () => {
    const retrying = jobOf('retrying')
    retrying.state = 'retrying'
    const jobs = [retrying, jobOf(a, 0, 'media'), jobOf('behind a', 0, 'media'), jobOf(b), jobOf(c)]
    expect(keys(jobs.filter(suspicion(2)))).toEqual([a, b])
    expect(keys(jobs.filter(suspicion(9)))).toEqual([a, b, c])
  })

  test('are those that were suspects before, too', () => {
    expect(keys([jobOf(a), jobOf(b), jobOf(c, 1)].filter(suspicion(1)))).toEqual([a, c])
  })
})

describe('the search for the event that made a process crash', () => {
  test('runs each suspect alone, and the others once all suspects have been handled', async () => {
    const [jobA, jobB, jobOther] = [jobOf(a), jobOf(b), jobOf(other)]
    const { enter, leave, started, alone, over } = search([jobA, jobB])
    enter(jobA, jobB, jobOther)
    expect(await started()).toEqual([a])
    expect([jobA.state, jobB.state, jobOther.state]).toEqual(['running', 'waiting', 'waiting'])
    leave(jobA)
    expect(await started()).toEqual([a, b])
    expect(over).toEqual([])
    leave(jobB)
    expect(await started()).toEqual([a, b, other])
    expect(over).toEqual([true])
    expect(alone).toEqual([a, undefined, b, undefined])
  })

  test('lets others run while no suspect has a slot, and then waits for their end', async () => {
    const [jobA, jobOther, jobAnother] = [jobOf(a), jobOf(other), jobOf(another)]
    const { enter, leave, started, alone } = search([jobA])
    enter(jobOther)
    expect(await started()).toEqual([other])
    enter(jobA, jobAnother)
    expect(await started()).toEqual([other])
    leave(jobOther)
    expect(await started()).toEqual([other, a])
    expect(alone).toEqual([a])
  })

  test('goes on until every event is considered, and runs a suspect alone that is considered later', async () => {
    const [jobA, jobB, jobOther, jobAnother] = [jobOf(a), jobOf(b), jobOf(other), jobOf(another)]
    const { consider, allConsidered, enter, leave, started, over } = search([jobA], 1, false, 0, false)
    enter(jobA)
    await started()
    leave(jobA)
    enter(jobOther)
    expect(await started()).toEqual([a, other])
    consider(jobB)
    enter(jobB, jobAnother)
    expect(await started()).toEqual([a, other])
    leave(jobOther)
    expect(await started()).toEqual([a, other, b])
    leave(jobB)
    expect(await started()).toEqual([a, other, b, another])
    expect(over).toEqual([])
    allConsidered()
    await started()
    expect(over).toEqual([true])
  })

  test('runs a suspect that has made a process crash once every event is considered: others go first', async () => {
    const [crashed, fresh, jobOther] = [jobOf(a, 1), jobOf(b), jobOf(other)]
    const { consider, allConsidered, enter, leave, started } = search([crashed], 2, false, 0, false)
    enter(crashed, jobOther)
    expect(await started(10_000)).toEqual([other])
    consider(fresh)
    enter(fresh)
    allConsidered()
    leave(jobOther)
    expect(await started()).toEqual([other, b])
    leave(fresh)
    expect(await started()).toEqual([other, b, a])
  })

  test('waits until the process before has noticed that it has to stop, if that may be alive', async () => {
    const job = jobOf(a)
    const { enter, started } = search([job], 1, true)
    enter(job)
    expect(await started(740)).toEqual([])
    expect(await started(20)).toEqual([a])
  })

  test('lets the others go first where each suspect has made the process crash before', async () => {
    const [worse, bad, jobOther, jobAnother] = [jobOf(a, 2), jobOf(b, 1), jobOf(other), jobOf(another)]
    const { enter, leave, started } = search([worse, bad], 3)
    enter(worse, bad, jobOther)
    expect(await started()).toEqual([other])
    enter(jobAnother)
    expect(await started()).toEqual([other, another])
    leave(jobOther)
    expect(await started(100)).toEqual([other, another])
    leave(jobAnother)
    expect(await started()).toEqual([other, another, b])
    leave(bad)
    expect(await started()).toEqual([other, another, b, a])
  })

  test('lets the others go first for 2 s at most', async () => {
    const [suspect, jobOther, jobAnother] = [jobOf(a, 1), jobOf(other), jobOf(another)]
    const { enter, leave, started } = search([suspect])
    enter(suspect, jobOther)
    expect(await started(2_100)).toEqual([other])
    enter(jobAnother)
    expect(await started(100)).toEqual([other])
    leave(jobOther)
    expect(await started()).toEqual([other, a])
  })

  test('runs a suspect that has made no process crash before one that has, and before the others', async () => {
    const [crashed, fresh] = [jobOf(a, 1), jobOf(b)]
    const { enter, started } = search([crashed, fresh])
    enter(crashed, jobOf(other), fresh)
    expect(await started()).toEqual([b])
  })

  test.each([
    [1, 1_000],
    [2, 2_000],
    [4, 8_000],
    [6, 32_000],
    [9, 32_000],
  ])('ends after crash number %i when suspects have run for %i ms in all', async (crashes, budgetMs) => {
    const [jobA, jobB] = [jobOf(a), jobOf(b)]
    const { enter, leave, started, over, alone } = search([jobA, jobB], crashes)
    enter(jobA, jobB, jobOf(other))
    await started(600)
    leave(jobA)
    expect(await started(budgetMs - 650)).toEqual([a, b])
    expect(over).toEqual([])
    expect(await started(100)).toEqual([a, b, other])
    expect(over).toEqual([false])
    expect(alone.at(-1)).toBe(undefined)
    leave(jobB)
    await started(60_000)
    expect(over).toEqual([false])
  })

  test('starts a suspect once it is recorded, and no other one meanwhile', async () => {
    const [jobA, jobB] = [jobOf(a), jobOf(b)]
    const { enter, started, alone } = search([jobA, jobB], 1, false, 50)
    enter(jobA)
    expect(await started(40)).toEqual([])
    enter(jobB)
    expect(await started(20)).toEqual([a])
    expect(await started(100)).toEqual([a])
    expect(alone).toEqual([a])
  })

  test('is not over when it is stopped while its end is recorded', async () => {
    const jobA = jobOf(a)
    const { enter, started, over, stop } = search([jobA], 1, false, 50)
    enter(jobA, jobOf(other))
    await started(1_010)
    stop()
    expect(await started(1_000)).toEqual([a])
    expect(over).toEqual([])
  })

  test('does not wait for a suspect that has ended meanwhile', async () => {
    const [jobA, jobOther] = [jobOf(a), jobOf(other)]
    const { enter, started, over } = search([jobA])
    jobA.end('failed')
    enter(jobOther)
    expect(await started()).toEqual([other])
    expect(over).toEqual([true])
  })

  test('leaves the state of an event alone that the inbox has given up', async () => {
    const jobA = jobOf(a)
    const { enter, started } = search([])
    enter(jobA)
    jobA.end('closing')
    expect(await started()).toEqual([a])
    expect(jobA.state).toBe('waiting')
  })

  test.each([false, true])(
    'starts nothing more once it is stopped (the process before may be alive: %s)',
    async (mayBeAlive) => {
      const [jobA, jobB] = [jobOf(a), jobOf(b)]
      const { enter, leave, started, stop, over } = search([jobA, jobB], 1, mayBeAlive)
      enter(jobA, jobB)
      const before = [...(await started())]
      stop()
      leave(jobA)
      enter(jobOf(other))
      expect(await started(60_000)).toEqual(before)
      expect(over).toEqual([])
    },
  )
})
