import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { AwaitedClaims, type AwaitedClaimsOptions } from '../../../src/inbox/sql/awaited-claims.ts'
import type { ClaimedLane } from '../../../src/inbox/sql/database.ts'
import { silent } from '../../support/silent.ts'

beforeEach(() => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
})

/** Claims of a database with so many awaited lanes. Each takes from the room, which the test gives back. */
function awaitedClaims(inDatabase: number, roomAtFirst: number) {
  const asked: number[] = []
  let left = inDatabase
  let room = roomAtFirst
  const claims = new AwaitedClaims({
    database: { run: async (step: number) => Array.from({ length: step }, () => ({}) as ClaimedLane) },
    shared: {
      claimAwaited(_owner: string, _handlers: unknown, lanes: number) {
        asked.push(lanes)
        const found = Math.min(lanes, left)
        left -= found
        return found
      },
    },
    host: { handlers: () => [], logger: silent },
    owner: () => 'me',
    exclusively: (run: () => Promise<unknown>) => run(),
    claimed: (lanes: readonly ClaimedLane[]) => {
      room -= lanes.length
    },
    ...{ room: () => room, holds: () => true, failed() {} },
  } as unknown as AwaitedClaimsOptions)
  return { claims, asked, end: (lanes: number) => (room += lanes), left: () => left }
}

test('a process without room asks once for lanes that await it, and not again if there are none', async () => {
  const { claims, asked } = awaitedClaims(0, 0)
  claims.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(asked).toEqual([1])
  claims.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(asked).toEqual([1, 1])
})

test('claims as many as there is room for, and the rest when there is room again', async () => {
  const { claims, left, end } = awaitedClaims(20, 8)
  claims.start()
  await vi.advanceTimersByTimeAsync(0)
  expect(left()).toBe(12)
  end(8)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(left()).toBeLessThanOrEqual(4)
  end(30)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(left()).toBe(0)
})

test('a process that never has room still takes one lane after the other', async () => {
  const { claims, asked, left } = awaitedClaims(3, 0)
  claims.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(left()).toBe(0)
  expect(asked).toEqual([1, 1, 1, 1])
})
