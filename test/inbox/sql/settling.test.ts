import { describe, expect, test, vi } from 'vitest'
import type { JobAttempt } from '../../../src/inbox/engine/job.ts'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import { SqlJob } from '../../../src/inbox/sql/job.ts'
import { SqlSettling } from '../../../src/inbox/sql/settling.ts'
import type { EventStore, Settled } from '../../../src/inbox/sql/store.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

/** Makes a settling over a store that answers with the results of a function. */
function settlingOver(settle: (end: Settled) => Promise<boolean>, isTransient = false) {
  const { logger, lines } = recordingLogger()
  const store = { settle: vi.fn(settle), isTransient: () => isTransient } as unknown as EventStore
  const host = { logger, handlersOf: () => ['a'] } as unknown as InboxHost
  const settling = new SqlSettling(store, host, undefined)
  const event = { id: 1, releases: 0, accepted: eventOf('one'), attempts: 0, completed: [], crashes: 0, size: 1 }
  const job = new SqlJob(event, store)
  const attempt = job.begin() as JobAttempt<SqlJob>
  const recorded = vi.fn()
  return { settling, settle: vi.mocked(store.settle), job, attempt, recorded, lines }
}

const failing = (count: number, isOurs = true) => {
  let left = count
  return async () => {
    if (left-- > 0) throw new Error('disk full')
    return isOurs
  }
}

describe('the end of an attempt', () => {
  test('is awaited by a close', async () => {
    let answer = (_: boolean) => {}
    const { settling, attempt, recorded } = settlingOver(() => new Promise((resolve) => (answer = resolve)))
    settling.complete(attempt, recorded)
    let isSettled = false
    const settled = settling.settled().then(() => (isSettled = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(isSettled).toBe(false)
    answer(true)
    await settled
    expect(recorded).toHaveBeenCalledTimes(1)
    await settling.settled()
  })

  test('is recorded again until it is in the storage, and its failure logged once', async () => {
    const { settling, settle, attempt, recorded, lines } = settlingOver(failing(2))
    settling.complete(attempt, recorded)
    await settling.settled()
    expect([settle.mock.calls.length, recorded.mock.calls.length]).toEqual([3, 1])
    expect(lines.map(({ level }) => level)).toEqual(['error'])
  })

  test('is recorded again without a log line after a failure that passes', async () => {
    const { settling, settle, attempt, recorded, lines } = settlingOver(failing(2), true)
    settling.complete(attempt, recorded)
    await settling.settled()
    expect([settle.mock.calls.length, lines]).toEqual([3, []])
  })

  test('that another process has made useless is a warning', async () => {
    const { settling, attempt, recorded, lines } = settlingOver(async () => false)
    settling.complete(attempt, recorded)
    await settling.settled()
    expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('lease of an event was lost') }])
  })

  test('is no warning if its first answer was lost: the record may be its own', async () => {
    const { settling, attempt, recorded, lines } = settlingOver(failing(1, false), true)
    settling.complete(attempt, recorded)
    await settling.settled()
    expect(lines).toEqual([])
  })

  test('waits twice as long after each failure', async () => {
    vi.useFakeTimers()
    try {
      const { settling, settle, attempt, recorded } = settlingOver(failing(Number.POSITIVE_INFINITY))
      settling.complete(attempt, recorded)
      const counts: number[] = []
      for (const ms of [0, 100, 200, 400, 800]) {
        await vi.advanceTimersByTimeAsync(ms)
        counts.push(settle.mock.calls.length)
      }
      expect(counts).toEqual([1, 2, 3, 4, 5])
      // At most 10 s.
      await vi.advanceTimersByTimeAsync(60_000)
      const { length } = settle.mock.calls
      await vi.advanceTimersByTimeAsync(10_000)
      expect(settle.mock.calls.length).toBe(length + 1)
      attempt.job.end('lost')
      await vi.advanceTimersByTimeAsync(20_000)
      expect(settle.mock.calls.length).toBe(length + 1)
      expect(recorded).toHaveBeenCalledTimes(1)
    } finally {
      vi.useRealTimers()
    }
  })
})
