import { expect, onTestFinished, test, vi } from 'vitest'
import {
  ActivityRecorder,
  StoredActivity,
  type StoredMinute,
  toActivity,
} from '../../../src/inbox/operations/activity.ts'

const delayMs = 5_000

/** Makes the activity of a process. Its storage notes the number of accepted deliveries in each write, and then answers. */
function recorded(answer: () => Promise<unknown>) {
  // The beginning of a minute, so that all is in one.
  vi.useFakeTimers({ now: new Date('2026-03-01T12:00:00Z') })
  onTestFinished(() => void vi.useRealTimers())
  const written: number[] = []
  const failures: unknown[] = []
  const write = async (minutes: readonly StoredMinute[]) => {
    for (const [, numbers] of minutes) written.push(JSON.parse(numbers)[0])
    await answer()
  }
  const activity = new StoredActivity({ write, read: () => [], failed: (error) => failures.push(error) })
  onTestFinished(() => activity.stop())
  const accept = () => activity.recorder.delivery({ outcome: 'accepted', status: 200, durationMs: 1 })
  activity.start()
  return { activity, accept, written, failures }
}

test('what could not be written is written the next time, and each failure is reported', async () => {
  const answers = [false, false, true, false, true]
  const { accept, written, failures } = recorded(async () => {
    if (answers.shift() === false) throw 'unavailable'
  })
  accept()
  await vi.advanceTimersByTimeAsync(3 * delayMs)
  accept()
  await vi.advanceTimersByTimeAsync(3 * delayMs)
  expect({ written, failures }).toEqual({ written: [1, 1, 1, 2, 2], failures: Array(3).fill('unavailable') })
})

test('while a write hangs none is started, and the rest is written after it', async () => {
  let end = () => {}
  const { activity, accept, written } = recorded(() => new Promise<void>((resolve) => (end = resolve)))
  accept()
  await vi.advanceTimersByTimeAsync(delayMs)
  accept()
  await vi.advanceTimersByTimeAsync(3 * delayMs)
  const finished = activity.finish()
  await vi.advanceTimersByTimeAsync(0)
  expect(written).toEqual([1])
  end()
  await vi.advanceTimersByTimeAsync(0)
  expect(written).toEqual([1, 2])
  end()
  await finished
  accept()
  await vi.advanceTimersByTimeAsync(3 * delayMs)
  expect(written).toEqual([1, 2])
})

test('a write that hangs and then fails is one failure, whose numbers are written the next time', async () => {
  let fail = () => {}
  const { accept, written, failures } = recorded(() => new Promise<void>((_, reject) => (fail = reject)))
  accept()
  await vi.advanceTimersByTimeAsync(4 * delayMs)
  fail()
  await vi.advanceTimersByTimeAsync(0)
  expect([written, failures]).toEqual([[1], [undefined]])
  await vi.advanceTimersByTimeAsync(delayMs)
  expect(written).toEqual([1, 1])
})

test('rejections are counted by reason and failed runs by handler, of all processes', () => {
  const [one, other] = [new ActivityRecorder(), new ActivityRecorder()]
  const reject = (recorder: ActivityRecorder, outcome: string) =>
    recorder.delivery({ outcome, status: 400, durationMs: 1 })
  for (const outcome of ['malformed', 'malformed', 'unauthorized']) reject(one, outcome)
  reject(other, 'malformed')
  one.handling({ outcome: 'retried', handler: 'publish' })
  other.handling({ outcome: 'retried', handler: 'publish' })
  other.handling({ outcome: 'retried', handler: '__proto__' })
  const stored: StoredMinute[] = []
  for (const recorder of [one, other]) void recorder.writeChanged(async (minutes) => stored.push(...minutes))
  const [minute] = toActivity(stored)
  expect(minute).toMatchObject({ rejected: 4, rejectedBy: { malformed: 3, unauthorized: 1 } })
  expect(Object.entries(minute?.failedBy ?? {})).toEqual([
    ['publish', 2],
    ['__proto__', 1],
  ])
})

test('an attempt that was stopped or released is neither handled nor failed', () => {
  const recorder = new ActivityRecorder()
  for (const outcome of ['stopped', 'released', 'retried', 'handled']) recorder.attempt({ outcome, sinceReceivedMs: 1 })
  expect(recorder.since(new Date(0))).toMatchObject([{ handled: 1, failed: 1 }])
})

test('a minute is forgotten after 24 h', () => {
  const noon = Date.parse('2026-03-01T12:00:00Z')
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const recorder = new ActivityRecorder()
  const minutesAfter = (minutes: number) => {
    vi.setSystemTime(noon + minutes * 60_000)
    recorder.handling({ outcome: 'retried', handler: 'publish' })
    return recorder.since(new Date(0)).map(({ startedAt }) => (startedAt.getTime() - noon) / 60_000)
  }
  expect([0, 1_440, 1_441].map(minutesAfter)).toEqual([[0], [0, 1_440], [1_440, 1_441]])
})

test('of the handlers that fail in a minute a process names the first 20', () => {
  const recorder = new ActivityRecorder()
  for (const _ of [1, 2])
    for (let index = 0; index < 30; index++) recorder.handling({ outcome: 'retried', handler: `handler ${index}` })
  const failedBy = recorder.since(new Date(0))[0]?.failedBy ?? {}
  expect(Object.keys(failedBy)).toHaveLength(21)
  expect(failedBy).toMatchObject({ 'handler 0': 2, 'handler 19': 2, others: 20 })
})

test('minutes of a version that does not count by name are read', () => {
  const [minute] = toActivity([
    [1, '[1,2,3]'],
    [1, '[1,2,3]'],
  ])
  expect(minute).toMatchObject({ accepted: 2, duplicates: 4, rejected: 6, ignored: 0, rejectedBy: {}, failedBy: {} })
})
