import { expect, test } from 'vitest'
import { SqliteJob } from '../../../src/inbox/sqlite-tables/job.ts'
import { hasCrashedTooOften, Recovery } from '../../../src/inbox/sqlite-tables/recovery.ts'
import { nextTurn } from '../../../src/internal/timers.ts'
import { eventOf } from '../../support/inbox.ts'

/** A recovery whose records are written when the test says so. */
function recovering({ isRecovering = true, holdMs = 0 } = {}) {
  const added: string[] = []
  const errors: string[] = []
  const recorded: (readonly number[] | 'recovered')[] = []
  const writes: (() => void)[] = []
  let isBroken = false
  const recovery = new Recovery({
    owner: {
      isRecovering,
      holdMs,
      recordRunning: (rows) => void recorded.push(rows),
      recovered: () => void recorded.push('recovered'),
    },
    commits: {
      add: (write) =>
        new Promise((resolve, reject) => {
          writes.push(() => (isBroken ? reject(new Error('full')) : resolve(write())))
        }),
      isOwner: () => true,
    },
    logger: { debug() {}, info() {}, warn() {}, error: (_, message) => void errors.push(message) },
    start: (job) => void added.push(job.key),
  })
  const commit = async () => {
    await nextTurn()
    for (const write of writes.splice(0)) write()
    await nextTurn()
  }
  const job = (row: number, crashes = 0, lane = `media ${row}`) => {
    const earlier = { attempts: 0, completed: [], crashes }
    return new SqliteJob(eventOf(`${row}`, lane), row, undefined, earlier)
  }
  /** Adds a job as the loader does. */
  const load = (...args: Parameters<typeof job>) => {
    const loaded = job(...args)
    recovery.add(loaded)
    recovery.inherit(loaded)
    return loaded
  }
  /** Starts an attempt of a job as the engine does. */
  const begin = (started: SqliteJob) => {
    started.state = 'running'
    const attempt = started.begin()
    return { attempt, allowed: recovery.begin(attempt) }
  }
  const handled = (ended: SqliteJob) => {
    ended.end('handled')
    recovery.ended(ended)
  }
  const breakStorage = () => {
    isBroken = true
  }
  return { recovery, added, recorded, errors, commit, job, load, begin, handled, breakStorage }
}

test('a process that follows an orderly one records nothing', async () => {
  const { recovery, added, recorded, job, begin, commit } = recovering({ isRecovering: false })
  const one = job(1)
  recovery.add(one)
  recovery.hasAll()
  expect(begin(one).allowed).toBe(undefined)
  await commit()
  expect([added, recorded]).toEqual([['1'], []])
})

test('healthy events start at once, each after it is on the list, and the list is over once all had an attempt', async () => {
  const { recovery, added, recorded, load, begin, commit, handled } = recovering()
  const [one, two] = [load(1), load(2)]
  recovery.hasAll()
  expect(added).toEqual(['1', '2'])
  let starts = 0
  for (const each of [one, two]) begin(each).allowed?.then(() => starts++)
  await nextTurn()
  expect([starts, one.state]).toEqual([0, 'waiting'])
  await commit()
  expect([starts, one.state, recorded.at(-1)]).toEqual([2, 'running', [1, 2]])
  handled(one)
  await commit()
  expect(recorded.at(-1)).toEqual([1, 2])
  handled(two)
  await commit()
  expect(recorded.at(-1)).toBe('recovered')
  expect(begin(load(3)).allowed).toBe(undefined)
})

test('an attempt that failed leaves the list with the record of its retry, and not its next attempt', async () => {
  const { recovery, recorded, load, begin, commit } = recovering()
  const [one] = [load(1), load(2)]
  recovery.hasAll()
  const first = begin(one)
  await commit()
  recovery.failed(first.attempt)
  expect(recorded.at(-1)).toEqual([])
  // Its transaction was undone, and is tried again.
  recovery.failed(first.attempt)
  expect(recorded.at(-1)).toEqual([])
  begin(one)
  recovery.failed(first.attempt)
  expect(recorded.at(-1)).toEqual([1])
})

test('an event that has ended leaves the list', async () => {
  const { recorded, commit, load, begin, handled } = recovering()
  const [first, second] = [load(1), load(2), load(3)]
  begin(first)
  await commit()
  handled(first)
  begin(second)
  await commit()
  expect(recorded).toEqual([[1], [2]])
})

test('the list is over although an event still waits for its retry', async () => {
  const { recovery, recorded, commit, job } = recovering()
  const retrying = job(1)
  retrying.state = 'retrying'
  recovery.inherit(retrying)
  recovery.hasAll()
  await commit()
  expect(recorded).toEqual(['recovered'])
})

test('suspects take turns, those with the least crashes first, beside the healthy ones', async () => {
  const { recovery, added, load, begin, commit, handled } = recovering()
  const jobs = [load(1, 3), load(2, 1), load(3), load(4, 1)]
  recovery.hasAll()
  expect(added).toEqual(['3'])
  await nextTurn()
  expect(added).toEqual(['3', '2'])
  for (const [row, next] of [
    [2, '4'],
    [4, '1'],
  ] as const) {
    const job = jobs[row - 1] as SqliteJob
    begin(job)
    await commit()
    handled(job)
    await nextTurn()
    expect(added.at(-1)).toBe(next)
  }
})

test('a suspect waits for events that may have less crashes, until all are loaded', async () => {
  const { recovery, added, load } = recovering()
  load(1, 2)
  await nextTurn()
  expect(added).toEqual([])
  recovery.hasAll()
  await nextTurn()
  expect(added).toEqual(['1'])
})

test('a suspect holds up the later events of its media item only, in their order', async () => {
  const { recovery, added, job, load, handled } = recovering()
  const first = load(1, 1, 'a')
  load(2, 0, 'a')
  load(3, 1, 'a')
  load(4, 0, 'a')
  recovery.hasAll()
  recovery.add(job(5, 0, 'a'))
  recovery.add(job(6, 0, 'b'))
  await nextTurn()
  expect(added).toEqual(['6', '1'])
  handled(first)
  await nextTurn()
  expect(added).toEqual(['6', '1', '2', '3'])
})

test('an event that has crashed nine processes waits for no turn, since it is not run', () => {
  const { added, load } = recovering()
  const [eighth, ninth] = [load(1, 8), load(2, 9)]
  expect([hasCrashedTooOften(eighth), hasCrashedTooOften(ninth)]).toEqual([false, true])
  expect(added).toEqual(['2'])
})

test('a hold comes before the first start', async () => {
  const { recovery, recorded, load, begin, commit } = recovering({ holdMs: 60 })
  const one = load(1)
  recovery.hasAll()
  const began = performance.now()
  const { allowed } = begin(one)
  await commit()
  expect(recorded).toEqual([])
  const committing = setInterval(commit, 5)
  await allowed
  clearInterval(committing)
  expect(performance.now() - began).toBeGreaterThan(55)
})

test('an event starts also if the storage cannot record that, which is logged', async () => {
  const { load, begin, commit, breakStorage, errors } = recovering()
  const { allowed } = begin(load(1))
  breakStorage()
  await commit()
  await allowed
  expect(errors).toEqual(['the inbox could not record that an event starts'])
})

test('once it is stopped, it adds no event and records none', async () => {
  const { recovery, added, recorded, load, begin, commit, handled } = recovering()
  const suspect = load(1, 1, 'a')
  load(2, 0, 'a')
  load(3, 1)
  recovery.hasAll()
  await nextTurn()
  recovery.stop()
  handled(suspect)
  expect(begin(suspect).allowed).toBe(undefined)
  await commit()
  expect([added, recorded]).toEqual([['1'], []])
})
