import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { EventOrder } from '../../../src/inbox/inbox.ts'
import type {
  ClaimedLane,
  LaneRelease,
  NewEvent,
  SettledEvent,
  SettledLane,
  StoredExpectation,
} from '../../../src/inbox/sql/database.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { ownFile } from '../../../src/inbox/sqlite/file.ts'
import { FileDatabase } from '../../../src/inbox/sqlite/file-database.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { crashed, freshPath } from './sqlite-tests.ts'

// The steps of `Database` over a file, in the orders in which they can meet.

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
  const { statements: steps } = database
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

const media = '7'

const eventOf = (key: string, changes: Partial<NewEvent> = {}): NewEvent => ({
  hash: key,
  media,
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
  test('that overtakes an earlier one records nothing, so that no untried event is jumped over', async () => {
    const { accept, claim, settle, unfinished } = await opened()
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    expect(await settle(laneOf(lane, { first: 1, last: 2, release: released }), endOf(2))).toEqual([])
    expect(unfinished()).toEqual([1, 2])
    expect(await settle(laneOf(lane, { last: 1 }), endOf(1))).toHaveLength(1)
    expect(await settle(laneOf(lane, { first: 1, last: 2, release: released }), endOf(2))).toHaveLength(1)
    expect(unfinished()).toEqual([])
  })

  test('that is repeated counts no attempt twice, and keeps the time of the retry', async () => {
    const { accept, claim, settle, rows } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    const retry = endOf(1, 'retry', { completed: ['a'] })
    const attempts = () => rows('SELECT attempts, due_at, completed FROM inbox_event')
    await settle(laneOf(lane, { last: 1 }), retry)
    const once = attempts()
    await settle(laneOf(lane, { last: 1 }), retry)
    expect(attempts()).toEqual(once)
    expect(once).toMatchObject([{ attempts: 1, completed: '["a"]' }])
  })

  test('keeps what a transaction has recorded as completed', async () => {
    const { database, accept, claim, settle, owner, rows } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    const scope = { handler: 'in a transaction', signal: new AbortController().signal }
    await database.transaction({ owner, media, turn: lane.turn, id: 1 }, scope, () => {})
    await settle(laneOf(lane, { last: 1 }), endOf(1, 'retry', { completed: ['a'] }))
    const [{ completed }] = rows('SELECT completed FROM inbox_event') as [{ completed: string }]
    expect(JSON.parse(completed).sort()).toEqual(['a', 'in a transaction'])
  })

  test('of a process that has left changes nothing', async () => {
    const { accept, claim, settle, run, steps, owner, unfinished } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    await run(steps.leave(owner))
    expect(await settle(laneOf(lane, { last: 1 }), endOf(1))).toEqual([])
    expect(unfinished()).toEqual([1])
  })
})

describe('a release', () => {
  test('that is repeated after the next claim does not free the lane', async () => {
    const { accept, claim, settle, next } = await opened()
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    const release = laneOf(lane, { last: 1, release: { hasMore: true, restMs: undefined } })
    await settle(release, endOf(1))
    expect(idsOf(first(await claim()))).toEqual([2])
    expect(await settle(release, endOf(1))).toEqual([])
    expect(await claim()).toEqual([])
    expect(await next()).toBe(Number.POSITIVE_INFINITY)
  })

  test('keeps the lane ready for an event that was accepted since the claim', async () => {
    const { accept, claim, settle } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    await accept(eventOf('2'))
    expect(await claim()).toEqual([])
    expect(await settle(laneOf(lane, { last: 1, release: released }), endOf(1))).toMatchObject([{ readyInMs: 0 }])
    expect(idsOf(first(await claim()))).toEqual([2])
  })

  test('beside a new retry sets the lane to the earliest due time', async () => {
    const { accept, claim, settle } = await opened()
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    await settle(laneOf(lane, { last: 1 }), endOf(1, 'retry', { delayMs: 5_000 }))
    const release = laneOf(lane, { first: 1, last: 2, release: released })
    const [recorded] = await settle(release, endOf(2, 'retry', { delayMs: 60_000 }))
    expect(recorded?.readyInMs).toBeGreaterThan(4_000)
    expect(recorded?.readyInMs).toBeLessThanOrEqual(5_000)
  })

  test('of a lane that rests keeps its events untried', async () => {
    const { accept, claim, settle, next } = await opened()
    await accept(eventOf('1'))
    const lane = first(await claim())
    await settle(laneOf(lane, { release: { hasMore: true, restMs: 40 } }))
    expect(await claim()).toEqual([])
    expect(await next()).toBeLessThanOrEqual(40)
    await vi.waitFor(async () => expect(idsOf(first(await claim()))).toEqual([1]))
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

  test('a claim reads what is not due yet, since nothing may overtake it', async () => {
    const { accept, claim, settle, run, steps } = await opened({ order: 'strict' })
    await accept(eventOf('1'), eventOf('2'))
    const lane = first(await claim())
    await settle(laneOf(lane, { last: 1 }), endOf(1, 'retry'))
    // Made loose, and strict again: two wait for their retries.
    await settle(laneOf(lane, { first: 1, last: 2, release: released }), endOf(2, 'retry', { delayMs: 1_000 }))
    expect(await run(steps.retry('2'))).toBe(true)
    const { events } = first(await claim())
    expect(events.map(({ id, dueInMs }) => [id, dueInMs > 0])).toEqual([
      [1, true],
      [2, false],
    ])
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

describe('a crash', () => {
  /** Opens the file as the next process finds it. */
  const next = async ({ path }: { readonly path: string }) => opened({ path: await crashed(path) })

  test('marks the lanes that were held, and no others', async () => {
    const before = await opened()
    await before.accept(eventOf('1'), eventOf('2', { media: '8' }))
    expect(await before.claim()).toHaveLength(2)
    await before.accept(eventOf('3', { media: '9' }))
    const { claim } = await next(before)
    expect((await claim(0)).map(({ media, crashes }) => [media, crashes])).toEqual([['9', 0]])
    expect((await claim(1)).map(({ crashes }) => crashes)).toEqual([1])
  })

  test('is not cleared by a release, and is by the end of an untried event', async () => {
    const before = await opened()
    await before.accept(eventOf('1'))
    await before.claim()
    const { claim, settle } = await next(before)
    await settle(laneOf(first(await claim()), { release: { hasMore: true, restMs: undefined } }))
    const lane = first(await claim())
    expect(lane.crashes).toBe(1)
    await settle(laneOf(lane, { last: 1, clear: true, release: { hasMore: true, restMs: undefined } }), endOf(1))
    expect(first(await claim()).crashes).toBe(0)
  })

  test('counts once for an event, however often that is sent, and not for a process without the lane', async () => {
    const { accept, claim, run, steps, owner, rows } = await opened()
    await accept(eventOf('1'))
    const { turn } = first(await claim())
    const held = { owner, media, turn, id: 1 }
    for (let i = 0; i < 2; i++) expect(await run(steps.count(held, 0, 1))).toBe(true)
    expect(await run(steps.count({ ...held, owner: 'another' }, 1, 2))).toBe(false)
    expect(await run(steps.count({ ...held, turn: turn + 1 }, 1, 2))).toBe(false)
    expect(rows('SELECT crashes FROM inbox_event')).toMatchObject([{ crashes: 1 }])
  })

  test('after a claim whose commit seemed to fail leaves no lane behind', async () => {
    const { accept, claim, steps, owner, run } = await opened()
    await accept(eventOf('1'))
    const step = steps.claim({ owner, lanes: 10, marked: 0, waits: false }) as { run(): unknown }
    // Committed, and the answer lost.
    await run({ run: step.run } as never)
    expect(idsOf(first(await claim()))).toEqual([1])
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

  test('of a lane that was deleted and made again find its new events only', async () => {
    const { accept, claim, settle, run, steps, rows } = await opened({ ttlMs: 1 })
    await accept(eventOf('dead'), eventOf('ended'))
    await settle(laneOf(first(await claim()), { last: 2, release: released }), endOf(1, 'dead'), endOf(2))
    await new Promise((resolve) => setTimeout(resolve, 5))
    await run(steps.expire())
    // The dead letter keeps its lane.
    expect(rows('SELECT media FROM inbox_lane')).toHaveLength(1)
    rows('DELETE FROM inbox_lane RETURNING media')
    await accept(eventOf('new'))
    expect(idsOf(first(await claim()))).toEqual([3])
  })
})

describe('an accept', () => {
  test('of a duplicate wakes nobody', async () => {
    const { accept, claim, settle } = await opened()
    await accept(eventOf('1'))
    await settle(laneOf(first(await claim()), { last: 1, release: released }), endOf(1))
    expect(await accept(eventOf('1'), eventOf('2', { media: '8' }), eventOf('2', { media: '9' }))).toEqual([
      'duplicate',
      'accepted',
      'duplicate',
    ])
    expect((await claim()).map(({ media }) => media)).toEqual(['8'])
  })

  test('is refused while as many wait as may, and those that run make room', async () => {
    const { accept, claim } = await opened({ maxWaiting: 2 })
    expect(await accept(eventOf('1'), eventOf('2'), eventOf('3'))).toEqual(['accepted', 'accepted', 'overloaded'])
    await claim()
    expect(await accept(eventOf('3'))).toEqual(['accepted'])
    expect(await accept(eventOf('4'))).toEqual(['overloaded'])
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

describe('expectations', () => {
  const begins = (at: number, dueAt: number): StoredExpectation => ({
    ...{ subject: 's', hash: `overdue ${at}`, media, rule: '"rule"', beganAt: at, dueAt, owed: '[]' },
    ...{ event: '{}', head: '["a","b","c"]', trace: undefined },
  })

  test('end with what was accepted before them, and are fired once', async () => {
    const { accept, run, steps } = await opened()
    const past = Date.now() - 1
    await accept(eventOf('end', { changes: { at: 5, begins: [], ends: ['s'] } }))
    await accept(eventOf('before', { changes: { at: 5, begins: [begins(5, past)], ends: [] } }))
    await accept(eventOf('after', { changes: { at: 6, begins: [begins(6, past)], ends: [] } }))
    const { overdue } = await run(steps.overdue(10))
    expect(overdue.map(({ hash }) => hash)).toEqual(['overdue 6'])
    expect(await run(steps.fire(overdue))).toBe(1)
    expect(await run(steps.fire(overdue))).toBe(0)
  })

  test('that end while they are fired are fired no more', async () => {
    const { accept, run, steps } = await opened()
    await accept(eventOf('begin', { changes: { at: 5, begins: [begins(5, Date.now() - 1)], ends: [] } }))
    const { overdue } = await run(steps.overdue(10))
    await accept(eventOf('end', { changes: { at: 9, begins: [], ends: ['s'] } }))
    expect(await run(steps.fire(overdue))).toBe(0)
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
      ['8', 1],
      ['7', 0],
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

test('a handler commits only while its process has the lane, and once', async () => {
  const { database, accept, claim, settle, owner, path } = await opened()
  await accept(eventOf('1'))
  const lane = first(await claim())
  const held = { owner, media, turn: lane.turn, id: 1 }
  const scope = () => ({ handler: 'a', signal: new AbortController().signal })
  const lost = expect.objectContaining({ code: 'lease_lost' })
  await expect(database.transaction({ ...held, turn: 9 }, scope(), () => {})).rejects.toEqual(lost)
  await expect(database.transaction({ ...held, owner: 'b' }, scope(), () => {})).rejects.toEqual(lost)
  await database.transaction(held, scope(), () => {})
  await expect(database.transaction(held, scope(), () => {})).rejects.toEqual(lost)
  await settle(laneOf(lane, { last: 1 }), endOf(1))
  await expect(database.transaction(held, { ...scope(), handler: 'b' }, () => {})).rejects.toEqual(lost)
  const other = openDatabase(path)
  onTestFinished(() => void other.close())
  expect(other.prepare('SELECT completed FROM inbox_event').all()).toMatchObject([{ completed: '["a"]' }])
})

test('a media id may be long, and hold anything', async () => {
  const { database } = await opened()
  const ids = ['m', 'M', 'm\0', '\ud800', '\ud801', 'x'.repeat(65_536), '']
  const hashes = ids.map((id) => database.hashMedia(id))
  expect(new Set(hashes).size).toBe(ids.length)
  for (const hash of hashes) expect(Number.isSafeInteger(Number(hash))).toBe(true)
  expect(database.hashMedia('m')).toBe(hashes[0])
})
