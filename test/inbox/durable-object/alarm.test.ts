import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { ObjectAlarm } from '../../../src/inbox/durable-object/alarm.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const never = Number.POSITIVE_INFINITY

/** The times of what is left (ms since the epoch): of events that can go on, and of the next deadline. */
interface Left {
  work: number[]
  deadline: number
}

/** An alarm for what is left, and when it is set. */
function alarmOver(left: Partial<Left> = {}, setAlarm = async () => {}, acceptDue = async (_left: Left) => {}) {
  let at: number | undefined
  const all: Left = { work: [], deadline: never, ...left }
  const sets: number[] = []
  const storage = {
    async setAlarm(time: number) {
      await setAlarm()
      at = time
      sets.push(time)
    },
    async deleteAlarm() {
      at = undefined
    },
  }
  const alarm = new ObjectAlarm({
    storage,
    logger: silent,
    workAt: () => Math.min(...all.work.map((time) => Math.max(time, Date.now()))),
    deadlineAt: () => all.deadline,
    acceptDue: () => acceptDue(all),
  })
  return { alarm, left: all, sets, inMs: () => vi.advanceTimersByTimeAsync(0).then(() => at && at - Date.now()) }
}

const after = (ms: number): number => Date.now() + ms
const now = 0
const always = () => false

test('the alarm is set once for many events, and deleted once none is left', async () => {
  const { alarm, left, sets, inMs } = alarmOver({ work: [now] })
  alarm.guard()
  expect(await inMs()).toBe(5_000)
  await vi.advanceTimersByTimeAsync(1_000)
  alarm.guard()
  expect(await inMs()).toBe(4_000)
  expect(sets).toHaveLength(1)
  left.work = []
  alarm.update()
  expect(await inMs()).toBe(undefined)
})

test('it is set for the first retry if nothing else is left', async () => {
  const { alarm, inMs } = alarmOver({ work: [after(3_600_000), after(60_000)] })
  alarm.update()
  expect(await inMs()).toBe(60_000)
})

test('it is brought forward for an event that is stored while a later retry is left, and not for a sooner one', async () => {
  const { alarm, left, inMs } = alarmOver({ work: [after(3_600_000)] })
  alarm.update()
  expect(await inMs()).toBe(3_600_000)
  left.work.push(now)
  alarm.guard()
  expect(await inMs()).toBe(5_000)
  left.work = [after(2_000)]
  alarm.update()
  expect(await inMs()).toBe(2_000)
  left.work.push(now)
  alarm.guard()
  expect(await inMs()).toBe(2_000)
})

test('it is not set while nothing can go on, and is set for a deadline then', async () => {
  const { alarm, left, inMs } = alarmOver()
  alarm.guard()
  alarm.update()
  expect(await inMs()).toBe(undefined)
  left.deadline = after(60_000)
  alarm.update()
  expect(await inMs()).toBe(60_000)
})

test('it guards events that run or are due soon', async () => {
  for (const due of [now, after(500)]) {
    const { alarm, inMs } = alarmOver({ work: [after(60_000), due] })
    alarm.update()
    expect(await inMs()).toBe(5_000)
  }
})

test('when it rings it is set again first, waits for what is due, and is then set for the rest', async () => {
  const { alarm, left, inMs } = alarmOver({ work: [now] })
  let hasEnded = false
  const rung = alarm.ring(always).then(() => {
    hasEnded = true
  })
  expect(await inMs()).toBe(5_000)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(hasEnded).toBe(false)
  left.work = [after(90_000)]
  await vi.advanceTimersByTimeAsync(200)
  await rung
  expect(await inMs()).toBeGreaterThan(89_000)
})

test('it ends before the time that the platform gives it, and rings again', async () => {
  const { alarm, inMs } = alarmOver({ work: [now] })
  const rung = alarm.ring(always)
  await vi.advanceTimersByTimeAsync(601_000)
  await rung
  expect(await inMs()).toBeGreaterThan(0)
})

test('it is set again after it could not be set', async () => {
  let isBroken = true
  const { alarm, inMs } = alarmOver({ work: [now] }, async () => {
    if (isBroken) throw new Error('storage')
  })
  alarm.guard()
  expect(await inMs()).toBe(undefined)
  isBroken = false
  alarm.guard()
  expect(await inMs()).toBe(5_000)
})

test('it is set for the next deadline if nothing else is left, and for a sooner one while an event is', async () => {
  const { alarm, left, inMs } = alarmOver({ work: [now], deadline: after(3_600_000) })
  alarm.guard()
  expect(await inMs()).toBe(5_000)
  left.deadline = after(3_000)
  alarm.guard()
  expect(await inMs()).toBe(3_000)
  left.work = []
  alarm.update()
  expect(await inMs()).toBe(3_000)
  left.deadline = after(3_600_000)
  alarm.update()
  expect(await inMs()).toBe(3_600_000)
})

test('when it rings for a deadline it hands over what is overdue, and is set for the next one', async () => {
  const handedOver: number[] = []
  const deadline = after(500)
  const { alarm, left, inMs } = alarmOver({ deadline }, undefined, async (all) => {
    if (all.deadline > Date.now()) return
    handedOver.push(Date.now())
    all.work.push(now)
    all.deadline = after(60_000)
  })
  const rung = alarm.ring(always)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(handedOver).toEqual([deadline])
  left.work = []
  await vi.advanceTimersByTimeAsync(200)
  await rung
  expect(await inMs()).toBeGreaterThan(57_000)
})

test('an object that has handled its events has no alarm and no timers', async () => {
  let at: number | undefined
  const storage = {
    ...storageInNode(),
    async setAlarm(time: number) {
      at = time
    },
    async deleteAlarm() {
      at = undefined
    },
  }
  const limits = { concurrency: 1, maxWaiting: 10, maxDeadLetters: 10, ttlMs: 60_000 }
  const open = (host: InboxHost) => new ObjectInbox(host, storage, limits)
  const { inbox, calls } = openInbox(defineInbox({ name: 'object', open }))
  for (const key of ['one', 'two']) {
    const accepted = inbox.accept(eventOf(key))
    await vi.advanceTimersByTimeAsync(0)
    expect(await accepted).toBe('accepted')
    expect(at).toBe(Date.now() + 5_000)
    const call = calls.next()
    await vi.advanceTimersByTimeAsync(1_000)
    ;(await call).finish()
    await vi.waitFor(() => expect([at, vi.getTimerCount()]).toEqual([undefined, 0]))
  }
})
