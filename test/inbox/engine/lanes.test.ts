import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type LaneJob, Lanes } from '../../../src/inbox/engine/lanes.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'

class Job implements LaneJob {
  readonly lane: string
  readonly name: string
  readonly key: string
  next: Job | undefined
  constructor(lane: string, name = lane) {
    this.lane = lane
    this.name = name
    this.key = name
  }
}

/** Makes lanes whose jobs end with a promise. */
function lanesOf(concurrency: number, start: (job: Job) => Promise<void>) {
  const lanes = new Lanes<Job>(concurrency, (job) => void start(job).then(() => lanes.ended(job)))
  return lanes
}

/** Makes lanes whose jobs run until the test ends them. */
function controlledLanes(concurrency: number) {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const lanes = new Lanes<Job>(concurrency, (job) => {
    started.push(job.name)
    ends.set(job.name, () => lanes.ended(job))
  })
  const end = async (name: string) => {
    ends.get(name)?.()
    await nextTurn()
  }
  return { lanes, started, end }
}

describe('lanes', () => {
  test('start no job in the turn in which it is added', async () => {
    const { lanes, started } = controlledLanes(4)
    lanes.add(new Job('a'))
    await Promise.resolve()
    expect(started).toEqual([])
    await nextTurn()
    expect(started).toEqual(['a'])
  })

  test('run the jobs of one lane one after another, in order', async () => {
    const { lanes, started, end } = controlledLanes(4)
    for (const name of ['a1', 'a2', 'a3']) lanes.add(new Job('a', name))
    await nextTurn()
    expect(started).toEqual(['a1'])
    await end('a1')
    lanes.add(new Job('a', 'a4'))
    await nextTurn()
    expect(started).toEqual(['a1', 'a2'])
    await end('a2')
    await end('a3')
    expect(started).toEqual(['a1', 'a2', 'a3', 'a4'])
    expect(lanes.running).toBe(1)
  })

  test('run different lanes concurrently, up to the limit', async () => {
    const { lanes, started, end } = controlledLanes(2)
    for (const lane of ['a', 'b', 'c', 'd']) lanes.add(new Job(lane))
    await nextTurn()
    expect(started).toEqual(['a', 'b'])
    expect(lanes.running).toBe(2)
    await end('b')
    expect(started).toEqual(['a', 'b', 'c'])
    expect(lanes.running).toBe(2)
  })

  test('reach a concurrency above the number of jobs that start in one turn', async () => {
    const { lanes, started } = controlledLanes(1_000)
    for (let i = 0; i < 1_000; i++) lanes.add(new Job(`${i}`))
    for (let i = 0; i < 10; i++) await nextTurn()
    expect(started).toHaveLength(1_000)
  })

  test('give a lane with one job its turn before a long lane has ended', async () => {
    const { lanes, started, end } = controlledLanes(1)
    for (let i = 0; i < 100; i++) lanes.add(new Job('long', `long-${i}`))
    lanes.add(new Job('short'))
    await nextTurn()
    await end('long-0')
    expect(started).toEqual(['long-0', 'short'])
    await end('short')
    expect(started).toEqual(['long-0', 'short', 'long-1'])
  })

  test('give the event loop a turn between jobs that never wait', async () => {
    let ran = 0
    const lanes = lanesOf(16, async () => {
      ran++
    })
    for (let i = 0; i < 10_000; i++) lanes.add(new Job(`lane-${i % 100}`))
    let turns = 0
    while (ran < 10_000) {
      const before = ran
      await nextTurn()
      turns++
      expect(ran - before).toBeLessThanOrEqual(512)
    }
    expect(turns).toBeGreaterThan(20)
    expect(lanes.running).toBe(0)
  })

  test('take a job that is added again after its end', async () => {
    const { lanes, started, end } = controlledLanes(4)
    const job = new Job('a', 'again')
    lanes.add(job)
    lanes.add(new Job('a', 'behind'))
    await nextTurn()
    await end('again')
    lanes.add(job)
    await end('behind')
    expect(started).toEqual(['again', 'behind', 'again'])
    await end('again')
    expect(lanes.running).toBe(0)
  })

  test('run every job in the order of its lane, with any jobs added and ended in between', async () => {
    const ranByLane = new Map<string, number[]>()
    const lanes = lanesOf(3, async ({ lane, name }) => {
      if (Number(name) % 3 === 0) await nextTurn()
      ranByLane.set(lane, [...(ranByLane.get(lane) ?? []), Number(name)])
    })
    for (let i = 0; i < 3_000; i++) {
      lanes.add(new Job(`lane-${(i * 7) % 11}`, String(i)))
      if (i % 50 === 0) await nextTurn()
    }
    const ran = () => [...ranByLane.values()].flat()
    while (ran().length < 3_000) await nextTurn()
    for (const numbers of ranByLane.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(ran()).size).toBe(3_000)
  })

  test('give the slot of a parked job to the next one, and keep its lane waiting', async () => {
    const { lanes, started, end } = controlledLanes(1)
    const parked = new Job('a')
    lanes.add(parked)
    for (const [lane, name] of ['a2', 'b', 'c', 'd'].map((name) => [name.charAt(0), name]))
      lanes.add(new Job(lane as string, name))
    await nextTurn()
    lanes.park(parked)
    await nextTurn()
    expect([started, lanes.running, lanes.parked.size]).toEqual([['a', 'b'], 1, 1])
    lanes.unpark(parked)
    lanes.unpark(parked)
    expect(lanes.parked.size).toBe(0)
    await nextTurn()
    expect(started).toEqual(['a', 'b'])
    // It does not take every slot, and need not wait behind all others.
    await end('b')
    expect(started).toEqual(['a', 'b', 'c'])
    await end('c')
    expect(started).toEqual(['a', 'b', 'c', 'a'])
    await end('a')
    await end('d')
    expect(started).toEqual(['a', 'b', 'c', 'a', 'd', 'a2'])
    await end('a2')
    expect(lanes.running).toBe(0)
  })

  test('start a parked job again although none has started since the last one was removed', async () => {
    const { lanes, started, end } = controlledLanes(2)
    const parked = new Job('a')
    lanes.add(parked)
    await nextTurn()
    lanes.park(parked)
    await nextTurn()
    lanes.add(new Job('b'))
    lanes.unpark(parked)
    await nextTurn()
    expect(started).toEqual(['a', 'b', 'a'])
    await end('a')
    await end('b')
    expect(lanes.running).toBe(0)
  })

  test('drop the jobs that have not started when they are cleared', async () => {
    const { lanes, started, end } = controlledLanes(1)
    for (const name of ['a', 'b', 'c']) lanes.add(new Job(name))
    await nextTurn()
    lanes.clear()
    await end('a')
    expect(started).toEqual(['a'])
    lanes.add(new Job('d'))
    await nextTurn()
    expect(started).toEqual(['a', 'd'])
  })

  describe('keep no job', () => {
    /** Adds jobs, and returns the number of those that are still in memory. */
    function addJobs(lanes: Lanes<Job>, count: number, laneOf: (i: number) => string) {
      const jobs = Array.from({ length: count }, (_, i) => {
        const job = new Job(laneOf(i), String(i))
        lanes.add(job)
        return new WeakRef(job)
      })
      return async () => {
        await collectGarbage()
        return jobs.filter((job) => job.deref() !== undefined).length
      }
    }

    test.each([
      ['a lane each', String],
      ['one lane', () => 'one'],
    ])('that has ended, with %s', async (_, laneOf) => {
      let ran = 0
      const lanes = lanesOf(16, async () => void ran++)
      const left = addJobs(lanes, 3_000, laneOf)
      while (ran < 3_000) await nextTurn()
      // The engine may still refer to the last of them.
      expect(await left()).toBeLessThan(16)
    })

    test('of a backlog that has ended, while the rest still waits', async () => {
      let ran = 0
      const lanes = lanesOf(1, async () => {
        if (++ran > 3_000) await new Promise(() => {})
      })
      const left = addJobs(lanes, 4_000, String)
      while (ran <= 3_000) await nextTurn()
      expect(await left()).toBeLessThan(1_000 + 1_024 + 16)
    })

    test('after they are cleared', async () => {
      const { lanes, end } = controlledLanes(1)
      const left = addJobs(lanes, 100, (i) => `lane-${i % 10}`)
      await nextTurn()
      lanes.clear()
      await end('0')
      expect(await left()).toBeLessThan(16)
    })
  })
})

describe('a lane that is held', () => {
  test('waits for the job with the key, which goes first, and holds no other lane back', async () => {
    const { lanes, started, end } = controlledLanes(4)
    for (const name of ['one', 'two']) lanes.add(new Job('a', name))
    await nextTurn()
    lanes.hold('a', 'one')
    await end('one')
    lanes.add(new Job('a', 'three'))
    lanes.add(new Job('b', 'other'))
    await nextTurn()
    expect(started).toEqual(['one', 'other'])
    lanes.add(new Job('a', 'one'))
    await nextTurn()
    for (const name of ['one', 'two', 'three']) await end(name)
    expect(started).toEqual(['one', 'other', 'one', 'two', 'three'])
    lanes.add(new Job('a', 'four'))
    await nextTurn()
    expect(started.at(-1)).toBe('four')
  })

  test('waits for a job that was never here, the first that was named', async () => {
    const { lanes, started, end } = controlledLanes(4)
    lanes.hold('a', 'one')
    lanes.hold('a', 'two')
    for (const name of ['two', 'three', 'one']) lanes.add(new Job('a', name))
    await nextTurn()
    for (const name of ['one', 'two', 'three']) await end(name)
    expect(started).toEqual(['one', 'two', 'three'])
  })

  test('gives up the jobs behind a running one', async () => {
    const { lanes, started, end } = controlledLanes(4)
    const [one, two, three] = ['one', 'two', 'three'].map((name) => new Job('a', name)) as [Job, Job, Job]
    for (const job of [one, two, three]) lanes.add(job)
    await nextTurn()
    expect(lanes.removeBehind(one)).toEqual([two, three])
    await end('one')
    lanes.add(new Job('a', 'four'))
    await nextTurn()
    expect(started).toEqual(['one', 'four'])
  })
})
