import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { EventOrder } from '../../../src/inbox/inbox.ts'
import type { ClaimedLane, LaneRelease, NewEvent, SettledEvent, SettledLane } from '../../../src/inbox/sql/database.ts'
import { ownFile } from '../../../src/inbox/sqlite/file.ts'
import { FileDatabase } from '../../../src/inbox/sqlite/file-database.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { freshPath } from './sqlite-tests.ts'

// What the contract of `Database` leaves to SQLite.

const hourMs = 3_600_000

interface Options {
  readonly path?: string
  readonly order?: EventOrder
  readonly maxWaiting?: number
  readonly ttlMs?: number
}

async function opened({ path, order = 'loose', maxWaiting = 100, ttlMs = hourMs }: Options = {}) {
  const file = ownFile(path ?? (await freshPath()))
  const limits = { concurrency: 2, maxWaiting, maxDeadLetters: 10, ttlMs }
  const database = FileDatabase.over(untyped({ logger: silent, order }), file, limits)
  onTestFinished(() => database.close())
  const { steps } = database
  const owner = crypto.randomUUID()
  await database.run(steps.join())
  const rows = (sql: string) => file.database.prepare(sql).all()
  return {
    path: file.path,
    database,
    rows,
    owner,
    accept: (...events: readonly NewEvent[]) => database.run(steps.accept(events)),
    claim: async (marked = 2) => (await database.run(steps.claim({ owner, lanes: 10, marked, waits: false }))).lanes,
    next: async () => (await database.run(steps.claim({ owner, lanes: 0, marked: 0, waits: false }))).nextInMs,
    settle: (lane: SettledLane, ...events: readonly SettledEvent[]) =>
      database.run(steps.settle(owner, [lane], events)),
    steps,
    run: database.run.bind(database),
    /** Ids of the events that are neither ended nor dead. */
    unfinished: () =>
      (
        rows('SELECT id FROM inbox_event WHERE ended_at IS NULL AND died_at IS NULL ORDER BY id') as { id: number }[]
      ).map(({ id }) => id),
  }
}

/** The lane's number is the id of its first event. */
const media = '1'

const eventOf = (key: string, changes: Partial<NewEvent> = {}): NewEvent => ({
  hash: key,
  media: '7',
  event: JSON.stringify({ key }),
  head: '["a","b","c"]',
  trace: undefined,
  receivedAt: Date.now(),
  owed: '[]',
  changes: undefined,
  ...changes,
})

const laneOf = ({ media, turn, position }: ClaimedLane, changes: Partial<SettledLane> = {}): SettledLane => ({
  ...{ media, turn, first: position, last: position, latestAt: undefined, awaits: false, clear: false },
  release: undefined,
  ...changes,
})

const released: LaneRelease = { hasMore: false, restMs: undefined }

const endOf = (id: number, kind: SettledEvent['kind'] = 'end', changes: Partial<SettledEvent> = {}): SettledEvent => ({
  ...{ media, id, kind, attempts: 1, counts: true, delayMs: 60_000, completed: [], failed: undefined, late: false },
  awaits: [],
  ...changes,
})

const first = ([lane]: readonly ClaimedLane[]): ClaimedLane => {
  if (lane === undefined) throw new Error('no lane was claimed')
  return lane
}

const idsOf = ({ events }: ClaimedLane) => events.map(({ id }) => id)

describe('a settle', () => {
  test('of a process that has left changes nothing', async () => {
    const { accept, claim, settle, run, steps, owner, unfinished } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    await run(steps.leave(owner))
    expect(await settle(laneOf(lane, { last: 1 }), endOf(1))).toEqual([])
    expect(unfinished()).toEqual([1])
  })
})

describe('in strict order', () => {
  test('a lane whose first event waits for its retry is not woken by later ones, nor by a replay', async () => {
    const { accept, claim, settle, run, steps } = await opened({ order: 'strict' })
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    await settle(laneOf(lane, { last: 1 }), endOf(1, 'dead'))
    await settle(laneOf(lane, { first: 1, last: 2, release: released }), endOf(2, 'retry'))
    await accept(eventOf('3'))
    expect(await run(steps.replay([{ id: 1, media }]))).toEqual([1])
    expect(await claim()).toEqual([])
    expect(await run(steps.retry('2'))).toBe(true)
    expect(idsOf(first(await claim()))).toEqual([2, 3, 4])
  })

  test('a restart keeps the order of what waits for its retry and what comes after it', async () => {
    const { path, database, accept, claim, settle } = await opened({ order: 'strict' })
    await accept(eventOf('1'), eventOf('2'))
    await settle(laneOf(first(await claim()), { last: 1, release: released }), endOf(1, 'retry', { delayMs: 700 }))
    await database.close()
    const next = await opened({ path, order: 'strict' })
    expect(await next.claim()).toEqual([])
    await vi.waitFor(async () => expect(idsOf(first(await next.claim()))).toEqual([1, 2]))
  })
})

describe('a claim', () => {
  test('whose commit seemed to fail leaves no lane behind', async () => {
    const { accept, claim, steps, owner, run } = await opened()
    await accept(eventOf('1'))
    const step = steps.claim({ owner, lanes: 10, marked: 0, waits: false }) as { run(): unknown }
    // Committed, and the answer lost.
    await run({ run: step.run } as never)
    expect(idsOf(first(await claim()))).toEqual([1])
  })

  test('reads at most some events of a lane, and at least one of each', async () => {
    const { accept, claim } = await opened()
    const large = JSON.stringify({ text: 'x'.repeat(150_000) })
    await accept(...['1', '2', '3'].map((key) => eventOf(key, { event: large })), eventOf('4', { media: '8' }))
    const lanes = await claim()
    expect(lanes.map(({ events, hasMore }) => [events.length, hasMore])).toEqual([
      [1, true],
      [1, false],
    ])
  })
})

describe('ids', () => {
  test('are those of replays too, and never start over', async () => {
    const { accept, claim, settle, run, steps } = await opened({ ttlMs: 1 })
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    await settle(laneOf(lane, { last: 2, release: released }), endOf(1, 'dead'), endOf(2))
    expect(await run(steps.replay([{ id: 1, media }]))).toEqual([1])
    expect(await run(steps.replay([{ id: 1, media }]))).toEqual([])
    const again = first(await claim())
    expect(idsOf(again)).toEqual([3])
    await settle(laneOf(again, { last: 3, release: released }), endOf(3))
    await new Promise((resolve) => setTimeout(resolve, 5))
    await run(steps.expire())
    await accept(eventOf('after'))
    expect(idsOf(first(await claim()))).toEqual([4])
  })

  test('of a dead letter keep its lane', async () => {
    const { accept, claim, settle, run, steps, rows } = await opened({ ttlMs: 1 })
    await accept(eventOf('dead'), eventOf('ended'))
    await settle(laneOf(first(await claim()), { last: 2, release: released }), endOf(1, 'dead'), endOf(2))
    await new Promise((resolve) => setTimeout(resolve, 5))
    await run(steps.expire())
    expect(rows('SELECT media FROM inbox_lane')).toHaveLength(1)
    expect(await run(steps.replay([{ id: 1, media }]))).toEqual([1])
    expect(idsOf(first(await claim()))).toEqual([3])
  })
})

test('a clock that was set back delays nothing longer than it was to wait, expectations included', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 24 * hourMs })
  onTestFinished(() => void vi.useRealTimers())
  const before = await opened()
  const { accept, claim, settle, path, database } = before
  const at = Date.now()
  const overdue = { subject: 's', hash: 'overdue', rule: '"rule"', owed: '[]', event: '{}', trace: undefined }
  const begin = { ...overdue, media: '9', head: '["a","b","c"]', beganAt: at, dueAt: at + 60_000 }
  await accept(eventOf('retried', { changes: { at, begins: [begin], ends: [] } }))
  await settle(laneOf(first(await claim()), { last: 1, release: released }), endOf(1, 'retry'))
  await accept(eventOf('waiting', { media: '8' }))
  await database.close()
  vi.useRealTimers()
  const { claim: claimNow, run, steps, next } = await opened({ path })
  expect((await claimNow()).map(({ media, events }) => [media, events.length])).toEqual(
    expect.arrayContaining([
      ['2', 1],
      ['1', 0],
    ]),
  )
  expect((await run(steps.overdue(1))).nextInMs).toBeLessThanOrEqual(60_000)
  expect(await next()).toBe(Number.POSITIVE_INFINITY)
})

test('a file that is handed over within its process marks no lane', async () => {
  const before = await opened()
  await before.accept(eventOf('1'))
  const lane = first(await before.claim())
  const { claim } = await opened({ path: before.path })
  expect((await claim()).map(({ crashes, events }) => [crashes, events.length])).toEqual([[0, 1]])
  await expect(before.settle(laneOf(lane, { last: 1 }), endOf(1))).rejects.toMatchObject({ code: 'unavailable' })
})
