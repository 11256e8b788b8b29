import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { WebhookError } from '../../../src/errors.ts'
import type { AttemptResult } from '../../../src/inbox/inbox.ts'
import type { SettledEvent, StoredEvent } from '../../../src/inbox/sql/database.ts'
import { HeldLane } from '../../../src/inbox/sql/lane.ts'
import { LaneRunner, type LaneRunnerOptions } from '../../../src/inbox/sql/lane-runner.ts'
import { eventOf } from '../../support/inbox.ts'
import { signalled } from '../../support/signalled.ts'
import { silent } from '../../support/silent.ts'

const storedEvent = (id: number): StoredEvent => ({
  ...{ id, event: JSON.stringify(eventOf(`${id}`, 'media').event), trace: null, receivedAt: 0, owed: null },
  ...{ attempts: 0, completed: '[]', failed: null, crashes: 0, late: false, since: 0, isRetry: false, dueInMs: 0 },
})

/** @param crashes of processes that had it */
const heldLane = (crashes = 0) =>
  new HeldLane(
    {
      ...{ media: 'media', turn: 1, position: 0, crashes, latestAt: undefined, hasMore: false, awaits: false },
      events: [storedEvent(1), storedEvent(2)],
    },
    'me',
  )

/** For a paused handler. */
const released: AttemptResult = { status: 'retry', delayMs: 0, counts: false, completed: [], failures: [] }

test('a lane that is lost while the count of its event is taken back does not come back', async () => {
  const counts: ReturnType<typeof signalled<void>>[] = []
  const run = () => {
    const count = signalled<void>()
    counts.push(count)
    return count.promise.then(() => true)
  }
  const handle = vi.fn(async () => released)
  const add = vi.fn()
  const turns = new LaneRunner({
    database: { run, steps: { count() {} } },
    host: { handle, handlersOf: () => ['a'], handlers: () => [{ name: 'a' }], logger: silent },
    ...{ concurrency: 1, ttlMs: 60_000, owed: undefined, settling: { add }, holds: () => true, lost() {}, ended() {} },
  } as unknown as LaneRunnerOptions)
  const lane = heldLane(1)
  turns.add(lane)
  await vi.waitFor(() => expect(counts).toHaveLength(1))
  counts[0]?.resolve()
  // Its handler has been skipped, so that the event has crashed nothing.
  await vi.waitFor(() => expect(counts).toHaveLength(2))
  turns.abort(lane, true, new WebhookError('lease_lost', 'lost'))
  counts[1]?.resolve()
  await setImmediate()
  expect([lane.state, lane.isDirty, handle.mock.calls.length]).toEqual(['lost', false, 1])
})

test('a lane runs again after the handler of an aborted attempt has ended, however often it was aborted', async () => {
  const handlers: ReturnType<typeof signalled<AttemptResult>>[] = []
  const handle = () => {
    const handler = signalled<AttemptResult>()
    handlers.push(handler)
    return handler.promise
  }
  const turns = new LaneRunner({
    host: { handle, handlersOf: () => ['a'], handlers: () => [{ name: 'a' }], logger: silent },
    ...{ concurrency: 2, ttlMs: 60_000, owed: undefined, settling: { add() {} }, holds: () => true, ended() {} },
  } as unknown as LaneRunnerOptions)
  const lost = heldLane()
  turns.add(lost)
  await vi.waitFor(() => expect(handlers).toHaveLength(1))
  // First by the clock of this process, then by the database.
  for (const isLost of [false, true]) turns.abort(lost, isLost, new WebhookError('lease_lost', 'lost'))
  const early = heldLane()
  turns.add(early)
  await vi.waitFor(() => expect(early.unsettled().lane.release).toEqual({ hasMore: true, restMs: 1_000 }))
  handlers[0]?.resolve(released)
  await setImmediate()
  turns.add(heldLane())
  await vi.waitFor(() => expect(handlers).toHaveLength(2))
})

const ended = (id: number, kind: SettledEvent['kind'], awaits: readonly string[] = []): SettledEvent => ({
  ...{ media: 'media', id, kind, completed: [], late: false, attempts: 1, counts: kind !== 'release', delayMs: 0 },
  ...{ failed: undefined, awaits },
})

test.each([
  ['ends', 'end', [], 'end', true],
  ['is a retry', 'retry', [], 'end', true],
  ['waits for handlers that only other processes have', 'release', ['b'], 'end', true],
  ['is put off by a pause', 'release', [], 'end', false],
  ['is put off by a pause, and nothing follows', 'release', [], undefined, false],
] as const)('the mark of a crash: its first event %s', (_, first, awaits, second, isCleared) => {
  const lane = heldLane(1)
  lane.ended(ended(1, first, awaits), () => {})
  if (second === undefined) lane.ended(ended(2, 'release'), () => {})
  else lane.ended(ended(2, second), () => {})
  lane.release()
  expect(lane.unsettled().lane.clear).toBe(isCleared)
})
