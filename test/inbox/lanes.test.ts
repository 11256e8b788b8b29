import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { Lanes } from '../../src/inbox/lanes.ts'
import { collectGarbage } from '../support/collect-garbage.ts'

/** Makes lanes whose turns last until the test ends them. */
function controlledLanes(concurrency: number) {
  const started: string[] = []
  const lanes = new Lanes<string>(concurrency, (lane) => void started.push(lane))
  const done = async () => {
    lanes.done()
    await nextTurn()
  }
  return { lanes, started, done }
}

test('no lane starts in the turn of the event loop in which it is added', async () => {
  const { lanes, started } = controlledLanes(4)
  lanes.add('a')
  await Promise.resolve()
  expect(started).toEqual([])
  await nextTurn()
  expect(started).toEqual(['a'])
})

test('lanes run side by side up to the limit, in the order they were added', async () => {
  const { lanes, started, done } = controlledLanes(2)
  for (const lane of ['a', 'b', 'c', 'd']) lanes.add(lane)
  await nextTurn()
  expect([started, lanes.running, lanes.waiting]).toEqual([['a', 'b'], 2, 2])
  await done()
  expect([started, lanes.running]).toEqual([['a', 'b', 'c'], 2])
  lanes.limit(0)
  await done()
  expect([started.length, lanes.running]).toEqual([3, 1])
  lanes.limit(3)
  await nextTurn()
  expect(started).toEqual(['a', 'b', 'c', 'd'])
})

test('a limit above the number of lanes that start in one turn is reached', async () => {
  const { lanes, started } = controlledLanes(1_000)
  for (let lane = 0; lane < 1_000; lane++) lanes.add(`${lane}`)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  expect(started).toHaveLength(1_000)
})

test('a lane whose turn had come goes behind the next one, and takes not every slot', async () => {
  const { lanes, started, done } = controlledLanes(1)
  for (const lane of ['a', 'b', 'c', 'd']) lanes.add(lane)
  await nextTurn()
  await done()
  lanes.addNext('a')
  for (const _ of ['c', 'a', 'd']) await done()
  expect(started).toEqual(['a', 'b', 'c', 'a', 'd'])
})

test('a lane whose turn had come starts although no other waits', async () => {
  const { lanes, started } = controlledLanes(2)
  lanes.add('a')
  await nextTurn()
  lanes.done()
  lanes.add('b')
  lanes.addNext('a')
  await nextTurn()
  expect(started).toEqual(['a', 'b', 'a'])
})

test('the event loop gets a turn between lanes that never wait', async () => {
  let ran = 0
  const lanes = new Lanes<number>(16, async (left) => {
    ran++
    await Promise.resolve()
    if (left > 1) lanes.add(left - 1)
    lanes.done()
  })
  for (let lane = 0; lane < 100; lane++) lanes.add(100)
  for (let before = ran; ran < 10_000; before = ran) {
    await nextTurn()
    expect(ran - before).toBeLessThanOrEqual(512)
  }
  expect(lanes.running).toBe(0)
})

test('lanes that wait are dropped when they are cleared', async () => {
  const { lanes, started, done } = controlledLanes(1)
  for (const lane of ['a', 'b', 'c']) lanes.add(lane)
  await nextTurn()
  lanes.clear()
  expect(lanes.waiting).toBe(0)
  await done()
  lanes.add('d')
  await nextTurn()
  expect(started).toEqual(['a', 'd'])
})

test('a lane in the middle of its turn lends its slot while it waits, and goes on with another', async () => {
  const { lanes, started } = controlledLanes(1)
  for (const lane of ['a', 'b', 'c', 'd']) lanes.add(lane)
  await nextTurn()
  let come = () => {}
  const back = vi.fn()
  void lanes.whileWaiting('a', new Promise<void>((resolve) => (come = resolve))).then(back)
  await nextTurn()
  expect(started).toEqual(['a', 'b'])
  come()
  await nextTurn()
  // Cleared or not, it is in the middle of its turn.
  lanes.clear()
  expect([back.mock.calls.length, lanes.waiting]).toEqual([0, 1])
  lanes.done()
  await nextTurn()
  expect([back.mock.calls.length, lanes.running, started]).toEqual([1, 1, ['a', 'b']])
})

test('no lane stays in memory that has ended, while others wait', async () => {
  let ran = 0
  const lanes = new Lanes<object>(1, async () => {
    if (++ran > 3_000) return
    await nextTurn()
    lanes.done()
  })
  const left = Array.from({ length: 4_000 }, () => {
    const lane = {}
    lanes.add(lane)
    return new WeakRef(lane)
  })
  while (ran <= 3_000) await nextTurn()
  await collectGarbage()
  expect(left.filter((lane) => lane.deref() !== undefined).length).toBeLessThan(1_000 + 1_024 + 16)
})
