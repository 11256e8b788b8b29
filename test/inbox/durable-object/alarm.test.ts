import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ObjectAlarm } from '../../../src/inbox/durable-object/alarm.ts'
import type { SqliteJob } from '../../../src/inbox/sqlite-tables/job.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Left = Pick<SqliteJob, 'state' | 'since'>

/** An alarm over these events, and when it is set. */
function alarmOver(
  left: Set<Left>,
  setAlarm?: () => Promise<void>,
  storeDue: () => number = () => Number.POSITIVE_INFINITY,
  isPaused = () => false,
  unloaded = () => 0,
) {
  let at: number | undefined
  const storage = {
    ...storageInNode(),
    async setAlarm(time: number) {
      if (setAlarm !== undefined) await setAlarm()
      at = time
    },
    async deleteAlarm() {
      at = undefined
    },
  }
  const alarm = new ObjectAlarm(storage, left as Set<SqliteJob>, isPaused, storeDue, unloaded, silent)
  return { alarm, inMs: () => at && at - Date.now() }
}

const retryIn = (ms: number): Left => ({ state: 'retrying', since: Date.now() + ms })
const running: Left = { state: 'running', since: 0 }
const always = () => false

test('the alarm is set once for many events, and deleted once none is left', async () => {
  const { alarm, inMs } = alarmOver(new Set())
  alarm.guard()
  expect(inMs()).toBe(5_000)
  await vi.advanceTimersByTimeAsync(1_000)
  alarm.guard()
  expect(inMs()).toBe(4_000)
  alarm.clear()
  expect(inMs()).toBe(undefined)
})

test('it is set for the first retry if nothing else is left', async () => {
  const { alarm, inMs } = alarmOver(new Set([retryIn(3_600_000), retryIn(60_000)]))
  alarm.update()
  expect(inMs()).toBe(60_000)
})

test('it is brought forward for an event that is stored while a later retry is left, and not for a sooner one', () => {
  const left = new Set([retryIn(3_600_000)])
  const { alarm, inMs } = alarmOver(left)
  alarm.update()
  expect(inMs()).toBe(3_600_000)
  left.add(running)
  alarm.guard()
  expect(inMs()).toBe(5_000)
  left.clear()
  left.add(retryIn(2_000))
  alarm.update()
  alarm.guard()
  expect(inMs()).toBe(2_000)
})

test('it does not wake an object for events that cannot start, while the inbox is paused', () => {
  let isPaused = true
  const left = new Set<Left>([retryIn(2_000), { state: 'waiting', since: 0 }])
  const { alarm, inMs } = alarmOver(left, undefined, undefined, () => isPaused)
  alarm.guard()
  alarm.update()
  expect(inMs()).toBe(undefined)
  left.add(running)
  alarm.update()
  expect(inMs()).toBe(5_000)
  left.delete(running)
  alarm.expect(Date.now() + 60_000)
  alarm.update()
  expect(inMs()).toBe(60_000)
  isPaused = false
  alarm.update()
  expect(inMs()).toBe(2_000)
})

test('it guards events that run or are due soon', () => {
  for (const due of [running, retryIn(500)]) {
    const { alarm, inMs } = alarmOver(new Set([retryIn(60_000), due]))
    alarm.update()
    expect(inMs()).toBe(5_000)
  }
})

test('when it rings it is set again first, waits for what is due, and is then set for the rest', async () => {
  const job: Left = { ...running }
  const { alarm, inMs } = alarmOver(new Set([job]))
  let hasEnded = false
  const rung = alarm.ring(always).then(() => {
    hasEnded = true
  })
  expect(inMs()).toBe(5_000)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(hasEnded).toBe(false)
  Object.assign(job, retryIn(90_000))
  await vi.advanceTimersByTimeAsync(200)
  await rung
  expect(inMs()).toBeGreaterThan(89_000)
})

test('it ends before the time that the platform gives it, and rings again', async () => {
  const { alarm, inMs } = alarmOver(new Set([running]))
  const rung = alarm.ring(always)
  await vi.advanceTimersByTimeAsync(601_000)
  await rung
  expect(inMs()).toBeGreaterThan(0)
})

test('it is set again after it could not be set', async () => {
  let isBroken = true
  const { alarm, inMs } = alarmOver(new Set(), async () => {
    if (isBroken) throw new Error('storage')
  })
  alarm.guard()
  await vi.advanceTimersByTimeAsync(0)
  isBroken = false
  alarm.guard()
  await vi.advanceTimersByTimeAsync(0)
  expect(inMs()).toBe(5_000)
})

test('it is set for the next deadline if nothing else is left, and for a sooner one while an event is', async () => {
  const { alarm, inMs } = alarmOver(new Set([retryIn(60_000)]))
  alarm.expect(Date.now() + 3_600_000)
  alarm.expect(Date.now() + 3_000)
  alarm.guard()
  expect(inMs()).toBe(3_000)
  alarm.clear()
  expect(inMs()).toBe(3_000)
  const { alarm: other, inMs: otherInMs } = alarmOver(new Set())
  other.expect(Date.now() + 3_600_000)
  other.guard()
  expect(otherInMs()).toBe(5_000)
  other.clear()
  expect(otherInMs()).toBe(3_600_000)
})

test('when it rings for a deadline it hands over what is overdue, and is set for the next one', async () => {
  const left = new Set<Left>()
  const stored: number[] = []
  const { alarm, inMs } = alarmOver(left, undefined, () => {
    stored.push(Date.now())
    left.add(running)
    return stored.length === 1 ? Date.now() + 60_000 : Number.POSITIVE_INFINITY
  })
  const deadline = Date.now() + 500
  alarm.expect(deadline)
  const rung = alarm.ring(always)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(stored).toEqual([deadline])
  left.clear()
  await vi.advanceTimersByTimeAsync(200)
  await rung
  expect(inMs()).toBeGreaterThan(57_000)
})

test('it is set while events are in the storage only, unless the inbox is paused', async () => {
  let isPaused = false
  const { alarm, inMs } = alarmOver(
    new Set([retryIn(60_000)]),
    undefined,
    undefined,
    () => isPaused,
    () => 1,
  )
  alarm.update()
  expect(inMs()).toBe(5_000)
  isPaused = true
  alarm.update()
  expect(inMs()).toBeUndefined()
})
