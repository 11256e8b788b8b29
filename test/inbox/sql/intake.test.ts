import { expect, onTestFinished, test, vi } from 'vitest'
import type { Acceptance } from '../../../src/inbox/inbox.ts'
import type { NewEvent } from '../../../src/inbox/sql/database.ts'
import { Intake, type IntakeOptions, makeNewEvent } from '../../../src/inbox/sql/intake.ts'
import { eventOf } from '../../support/inbox.ts'

type Accept = (events: readonly NewEvent[]) => Promise<readonly Acceptance[]>

const same = (text: string) => text
const newEvent = (key: string, title = '') => {
  const { event, ...rest } = eventOf(key)
  return makeNewEvent({ hashKey: same, hashMedia: same }, { ...rest, event: { ...event, title } }, [], undefined)
}

const acceptAll: Accept = async (events) => events.map(() => 'accepted')
const cutOff = new Error('Connection terminated unexpectedly')
const timeout = new Error('Query read timeout')
const failure = (error: unknown) => (error === timeout ? 'timeout' : error === cutOff ? 'transient' : undefined)

function intakeOver(accept: Accept, stored = () => {}, { timeoutMs = 2_000, isShared = true } = {}) {
  const steps = { accept: (events: unknown) => events, shared: isShared ? {} : undefined }
  const database = { steps, run: accept, failure }
  return new Intake({ database: database as unknown as IntakeOptions['database'], host: {}, timeoutMs, stored })
}

const sizeOf = (events: readonly NewEvent[]) => events.reduce((sum, { event }) => sum + event.length, 0)

test('an event whose first answer was lost is looked for, though it is known the second time', async () => {
  const stored = vi.fn()
  const accept = vi.fn<Accept>(async () => ['duplicate']).mockRejectedValueOnce(cutOff)
  expect(await intakeOver(accept, stored).add(newEvent('one'))).toBe('duplicate')
  expect(stored).toHaveBeenCalledOnce()
})

test('an event that was known at once is not looked for', async () => {
  const stored = vi.fn()
  expect(await intakeOver(async () => ['duplicate'], stored).add(newEvent('one'))).toBe('duplicate')
  expect(stored).not.toHaveBeenCalled()
})

test('where one process writes, events are looked for in the commit that stores them', async () => {
  const stored = vi.fn()
  let commit = (_: readonly Acceptance[]) => {}
  const accept: Accept = () => new Promise((resolve) => (commit = resolve))
  const added = intakeOver(accept, stored, { isShared: false }).add(newEvent('one'))
  await expect.poll(() => stored.mock.calls.length).toBe(1)
  commit(['accepted'])
  expect(await added).toBe('accepted')
  expect(stored).toHaveBeenCalledOnce()
})

test('an event whose step failed comes before those that wait', async () => {
  const steps: { keys: readonly string[]; answer: (answer: readonly Acceptance[] | Promise<never>) => void }[] = []
  const accept: Accept = (events) =>
    new Promise((answer) => steps.push({ keys: events.map(({ hash }) => hash), answer }))
  const intake = intakeOver(accept, () => {}, { timeoutMs: 60_000 })
  const added = [intake.add(newEvent('failed'))]
  await expect.poll(() => steps.length).toBe(1)
  added.push(intake.add(newEvent('running')))
  await expect.poll(() => steps.length).toBe(2)
  added.push(intake.add(newEvent('waiting')))
  steps[0]?.answer(Promise.reject(cutOff))
  await expect.poll(() => steps.length).toBe(3)
  expect(steps[2]?.keys).toEqual(['failed', 'waiting'])
  steps[1]?.answer(['duplicate'])
  steps[2]?.answer(['accepted', 'accepted'])
  expect(await Promise.all(added)).toEqual(['accepted', 'duplicate', 'accepted'])
})

test('an event that the database rejects fails alone', async () => {
  const intake = intakeOver(async (events) => {
    if (events.some(({ hash }) => hash === 'bad')) throw new Error('invalid input syntax')
    return acceptAll(events)
  })
  const added = await Promise.allSettled(['one', 'bad', 'two'].map((key) => intake.add(newEvent(key))))
  expect(added.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('large events are stored although only half a megabyte arrives in time', async () => {
  let timeouts = 0
  const intake = intakeOver(async (events) => {
    if (sizeOf(events) <= 500_000) return acceptAll(events)
    timeouts++
    throw timeout
  })
  const added = Array.from({ length: 100 }, (_, index) => intake.add(newEvent(`${index}`, 'x'.repeat(60_000))))
  expect(await Promise.all(added)).toEqual(Array(100).fill('accepted'))
  // The two that were on their way, and their halves.
  expect(timeouts).toBeLessThanOrEqual(4)
})

test('large events are stored a few at a time', async () => {
  const sizes: number[] = []
  const intake = intakeOver(async (events) => {
    sizes.push(sizeOf(events))
    return acceptAll(events)
  })
  await Promise.all(Array.from({ length: 150 }, (_, index) => intake.add(newEvent(`${index}`, 'x'.repeat(60_000)))))
  for (const size of sizes) expect(size).toBeLessThan(1_100_000)
})

test('events that come after an outage are stored at once, however many were given up in it', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let answers = false
  const hang = () => new Promise<never>((_, reject) => setTimeout(() => reject(timeout), 2_000))
  const intake = intakeOver((events) => (answers ? acceptAll(events) : hang()))
  const addAll = (name: string, count: number) =>
    Promise.allSettled(Array.from({ length: count }, (_, index) => intake.add(newEvent(`${name} ${index}`))))
  const during = addAll('during', 1_200)
  await vi.advanceTimersByTimeAsync(2_000)
  expect((await during).every(({ status }) => status === 'rejected')).toBe(true)
  await vi.advanceTimersByTimeAsync(100)
  answers = true
  const after = addAll('after', 5)
  await vi.advanceTimersByTimeAsync(10)
  expect(await after).toEqual(Array(5).fill({ status: 'fulfilled', value: 'accepted' }))
})
