import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type LaneJob, Lanes } from '../../src/internal/lanes.ts'

class Job implements LaneJob<Job> {
  readonly lane: string
  readonly name: string
  next: Job | undefined
  constructor(lane: string, name = lane) {
    this.lane = lane
    this.name = name
  }
}

/** Lanes whose jobs run until the test ends them. */
function controlledLanes(concurrency: number) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const lanes = new Lanes<Job>(concurrency, ({ name }) => {
    begun.push(name)
    return new Promise((resolve) => ends.set(name, resolve))
  })
  const end = async (name: string) => {
    ends.get(name)?.()
    await nextTurn()
  }
  return { lanes, begun, end }
}

describe('lanes', () => {
  test('begin nothing in the turn in which it is added', async () => {
    const { lanes, begun } = controlledLanes(4)
    lanes.add(new Job('a'))
    await Promise.resolve()
    expect(begun).toEqual([])
    await nextTurn()
    expect(begun).toEqual(['a'])
  })

  test('run the jobs of one lane one after another, in order', async () => {
    const { lanes, begun, end } = controlledLanes(4)
    for (const name of ['a1', 'a2', 'a3']) lanes.add(new Job('a', name))
    await nextTurn()
    expect(begun).toEqual(['a1'])
    await end('a1')
    lanes.add(new Job('a', 'a4'))
    await nextTurn()
    expect(begun).toEqual(['a1', 'a2'])
    await end('a2')
    await end('a3')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'a4'])
    expect(lanes.running).toBe(1)
  })

  test('run different lanes side by side, up to the concurrency', async () => {
    const { lanes, begun, end } = controlledLanes(2)
    for (const lane of ['a', 'b', 'c', 'd']) lanes.add(new Job(lane))
    await nextTurn()
    expect(begun).toEqual(['a', 'b'])
    expect(lanes.running).toBe(2)
    await end('b')
    expect(begun).toEqual(['a', 'b', 'c'])
    expect(lanes.running).toBe(2)
  })

  test('reach a concurrency that is larger than what begins in a turn', async () => {
    const { lanes, begun } = controlledLanes(1_000)
    for (let i = 0; i < 1_000; i++) lanes.add(new Job(`${i}`))
    for (let i = 0; i < 10; i++) await nextTurn()
    expect(begun).toHaveLength(1_000)
  })

  test('let a lane with one job have its turn before a long lane has ended', async () => {
    const { lanes, begun, end } = controlledLanes(1)
    for (let i = 0; i < 100; i++) lanes.add(new Job('long', `long-${i}`))
    lanes.add(new Job('short'))
    await nextTurn()
    await end('long-0')
    expect(begun).toEqual(['long-0', 'short'])
    await end('short')
    expect(begun).toEqual(['long-0', 'short', 'long-1'])
  })

  test('give the event loop a turn between jobs that never wait', async () => {
    let ran = 0
    const lanes = new Lanes<Job>(16, async () => {
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

  test('take a job again that comes back after its end', async () => {
    const { lanes, begun, end } = controlledLanes(4)
    const job = new Job('a', 'again')
    lanes.add(job)
    lanes.add(new Job('a', 'behind'))
    await nextTurn()
    await end('again')
    lanes.add(job)
    await end('behind')
    expect(begun).toEqual(['again', 'behind', 'again'])
    await end('again')
    expect(lanes.running).toBe(0)
  })

  test('run every job in the order of its lane, whatever is added and ended in between', async () => {
    const ranByLane = new Map<string, number[]>()
    const lanes = new Lanes<Job>(3, async ({ lane, name }) => {
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

  test('forget what has not begun when they are cleared', async () => {
    const { lanes, begun, end } = controlledLanes(1)
    for (const name of ['a', 'b', 'c']) lanes.add(new Job(name))
    await nextTurn()
    lanes.clear()
    await end('a')
    expect(begun).toEqual(['a'])
    lanes.add(new Job('d'))
    await nextTurn()
    expect(begun).toEqual(['a', 'd'])
  })
})
