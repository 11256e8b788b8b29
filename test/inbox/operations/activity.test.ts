import { expect, onTestFinished, test, vi } from 'vitest'
import { StoredActivity, type StoredMinute } from '../../../src/inbox/operations/activity.ts'

const pauseMs = 5_000

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
  await vi.advanceTimersByTimeAsync(3 * pauseMs)
  accept()
  await vi.advanceTimersByTimeAsync(3 * pauseMs)
  expect({ written, failures }).toEqual({ written: [1, 1, 1, 2, 2], failures: Array(3).fill('unavailable') })
})

test('while a write hangs none is started, and the rest is written after it', async () => {
  let end = () => {}
  const { activity, accept, written } = recorded(() => new Promise<void>((resolve) => (end = resolve)))
  accept()
  await vi.advanceTimersByTimeAsync(pauseMs)
  accept()
  await vi.advanceTimersByTimeAsync(3 * pauseMs)
  const finished = activity.finish()
  await vi.advanceTimersByTimeAsync(0)
  expect(written).toEqual([1])
  end()
  await vi.advanceTimersByTimeAsync(0)
  expect(written).toEqual([1, 2])
  end()
  await finished
  accept()
  await vi.advanceTimersByTimeAsync(3 * pauseMs)
  expect(written).toEqual([1, 2])
})
