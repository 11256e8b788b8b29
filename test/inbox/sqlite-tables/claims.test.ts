import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimedEvent } from '../../../src/inbox/sql/event.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { SqliteClaims } from '../../../src/inbox/sqlite-tables/claims.ts'
import { inTransaction } from '../../../src/inbox/sqlite-tables/database.ts'
import { SqliteEvents } from '../../../src/inbox/sqlite-tables/events.ts'
import { makeTables } from '../../../src/inbox/sqlite-tables/schema.ts'
import { tablesOf } from '../../../src/inbox/sqlite-tables/storage.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { freshPath } from '../sqlite/sqlite-tests.ts'

interface Stored {
  readonly media?: string
  readonly crashes?: number
}

/** Claims of a process that finds these events, whose ids begin with 1. What it holds is what it has claimed. */
async function claiming(stored: readonly Stored[] = [], { isRecovering = false, holdMs = 0, maxBytes = 1e9 } = {}) {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  makeTables(database)
  const events = new SqliteEvents(database, (text) => text)
  const tables = tablesOf(database, events)
  let count = 0
  const store = ({ media, crashes = 0 }: Stored = {}) => {
    const name = `${++count}`
    const id = events.accept(events.write(eventOf(name, media ?? `media ${name}`))) as number
    if (crashes > 0) database.prepare('UPDATE inbox_event SET crashes = ? WHERE id = ?').run(crashes, id)
    return id
  }
  inTransaction(database, () => {
    for (const each of stored) store(each)
  })
  const recorded: (readonly number[] | 'recovered')[] = []
  const errors: string[] = []
  const disk = { isBroken: false, commits: 0 }
  const add = async <T>(write: () => T): Promise<T> => {
    disk.commits++
    if (disk.isBroken) throw new Error('full')
    return inTransaction(database, write)
  }
  const claims = new SqliteClaims({
    tables,
    commits: { add, accept: () => undefined, deferred: 0, isOwner: () => true },
    owner: {
      isRecovering,
      holdMs,
      recordRunning: (ids) => void recorded.push(ids),
      recovered: () => void recorded.push('recovered'),
    },
    logger: { ...silent, error: (_, message) => void errors.push(message) },
    maxBytes,
  })
  const held = new Map<number, ClaimedEvent>()
  /** Claims as the worker does: one suspect at a time. */
  const claim = async ({ limit = 256, heldBytes = 0 } = {}) => {
    const withSuspect = ![...held.values()].some(({ crashes }) => crashes > 0)
    const claimed = await claims.claim(() => ({
      limit,
      withSuspect,
      held: [...held.values()],
      heldBytes,
      skippedMedia: [],
    }))
    for (const event of claimed.events) held.set(Number(event.id), event)
    return { ...claimed, ids: claimed.events.map(({ id }) => id) }
  }
  const ends = (id: number) => {
    held.delete(id)
    events.remove(id)
  }
  const fails = (id: number, delayMs: number) => {
    held.delete(id)
    events.delay(id, { delayMs, completed: [], attempts: 1, isHealthy: true })
    claims.ended(id)
  }
  const damage = (id: number) => void database.prepare("UPDATE inbox_event SET event = '{' WHERE id = ?").run(id)
  return { database, claims, claim, store, ends, fails, damage, held, recorded, errors, disk }
}

const waiting = (count: number): Stored[] => Array.from({ length: count }, () => ({}))
const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

describe('claims', () => {
  test('read on in the order of acceptance, 50 events at a time, and write nothing', async () => {
    const { claim, store, disk } = await claiming(waiting(60))
    expect(await claim()).toMatchObject({ ids: idsFrom(1, 50), hasMore: true })
    expect(await claim()).toMatchObject({ ids: idsFrom(51, 10), hasMore: false })
    store()
    expect(await claim({ limit: 1 })).toMatchObject({ ids: [61], hasMore: true })
    expect(await claim()).toMatchObject({ ids: [], hasMore: false, nextInMs: Number.POSITIVE_INFINITY })
    expect(disk.commits).toBe(0)
  })

  test('are spared by an event that was just stored, unless others may wait before it', async () => {
    const { claims, claim, store } = await claiming(waiting(2))
    expect(claims.handOver(store())).toBe(false)
    expect((await claim()).ids).toEqual([1, 2, 3])
    expect(claims.handOver(store())).toBe(true)
    claims.stored(store())
    expect(claims.handOver(store())).toBe(false)
    expect((await claim()).ids).toEqual([5, 6])
  })

  test('find an event that has the id of an earlier one, whose key was forgotten', async () => {
    const { claims, claim, store, ends, database } = await claiming([{}, {}])
    await claim()
    ends(2)
    database.exec('DELETE FROM inbox_key WHERE id = 2')
    const id = store()
    expect([id, claims.handOver(id)]).toEqual([2, false])
    claims.stored(id)
    expect((await claim()).ids).toEqual([2])
  })

  test('that start over leave out what is held, in pages, each in a turn of its own', async () => {
    const { claims, claim, held } = await claiming(waiting(2_100))
    while ((await claim()).hasMore);
    held.delete(7)
    held.delete(2_050)
    claims.startOver()
    expect(await claim()).toMatchObject({ ids: [7], hasMore: true })
    expect(await claim()).toMatchObject({ ids: [2_050], hasMore: false })
    claims.startOver()
    let turns = 0
    setImmediate(() => turns++)
    expect(await claim()).toMatchObject({ ids: [], hasMore: true })
    expect(turns).toBe(1)
  })

  test('take a retry that is due before what waits, and it is among that for the process after a crash', async () => {
    const { claim, fails, database } = await claiming([{}, {}])
    await claim()
    fails(2, 0)
    fails(1, 60_000)
    const { events, nextInMs } = await claim()
    expect(events).toMatchObject([{ id: 2, attempts: 1 }])
    expect(nextInMs).toBeGreaterThan(59_000)
    expect(database.prepare('SELECT id FROM inbox_event WHERE due_at IS NULL').all()).toMatchObject([{ id: 2 }])
  })

  test('read as many events as there is memory for, and nothing is handed over before what waits', async () => {
    const { claims, claim, store } = await claiming([{}, {}], { maxBytes: 100 })
    expect(await claim({ heldBytes: 100 })).toMatchObject({ ids: [], hasMore: true })
    expect(claims.handOver(store())).toBe(false)
    // Each event is longer than that.
    expect(await claim({ heldBytes: 99 })).toMatchObject({ ids: [1], hasMore: true })
    expect(claims.handOver(store())).toBe(false)
    for (const id of [2, 3, 4]) expect((await claim()).ids).toEqual([id])
    expect(await claim()).toMatchObject({ ids: [], hasMore: false })
  })

  test('that start over read as many events as there is memory for, and leave none out', async () => {
    const { claims, claim, held } = await claiming([{}, {}, {}], { maxBytes: 100 })
    for (const id of [1, 2, 3]) expect((await claim()).ids).toEqual([id])
    // The answer to the claim of these was lost.
    for (const id of [1, 2]) held.delete(id)
    claims.startOver()
    expect(await claim()).toMatchObject({ ids: [1], hasMore: true })
    expect(await claim()).toMatchObject({ ids: [2] })
    expect(await claim()).toMatchObject({ ids: [], hasMore: false })
  })

  test('report an event that cannot be read once, and hand it out once it can', async () => {
    const { claims, claim, damage, errors, database } = await claiming([{}, {}, {}])
    const { event } = database.prepare('SELECT event FROM inbox_event WHERE id = 2').get() as { event: string }
    damage(2)
    expect((await claim()).ids).toEqual([1, 3])
    claims.startOver()
    expect((await claim()).ids).toEqual([])
    expect(errors).toEqual(['an event of the inbox cannot be read, and stays in its storage'])
    expect(claims.unreadable).toBe(1)
    database.prepare('UPDATE inbox_event SET event = ? WHERE id = 2').run(event)
    claims.startOver()
    expect((await claim()).ids).toEqual([2])
    expect(claims.unreadable).toBe(0)
  })
})

describe('claims after a crash', () => {
  const isRecovering = true

  test('record what is held before it starts, until each event that was left has ended or waits for a retry', async () => {
    const { claims, claim, store, ends, fails, recorded, disk } = await claiming([{}, {}], { isRecovering })
    expect((await claim()).ids).toEqual([1, 2])
    expect(recorded).toEqual([[1, 2]])
    store()
    expect((await claim()).ids).toEqual([3])
    expect(recorded.at(-1)).toEqual([1, 2, 3])
    fails(1, 60_000)
    expect(recorded.at(-1)).toEqual([2, 3])
    expect(claims.endsRecovery()).toBe(false)
    ends(2)
    expect([claims.endsRecovery(), claims.endsRecovery()]).toEqual([true, false])
    expect(recorded.at(-1)).toBe('recovered')
    disk.commits = 0
    store()
    expect((await claim()).ids).toEqual([4])
    expect(disk.commits).toBe(0)
  })

  test('take an event off the list in each transaction that records its retry, as an earlier one may be undone', async () => {
    const { claims, claim, recorded } = await claiming([{}, {}], { isRecovering })
    await claim()
    claims.ended(1)
    claims.ended(1)
    expect(recorded.slice(1)).toEqual([[2], [2]])
  })

  test('take suspects in turns, those with the fewest crashes first, beside the healthy events', async () => {
    const suspects = [{ crashes: 3 }, { crashes: 1 }, {}, { crashes: 1 }]
    const { claim, ends } = await claiming(suspects, { isRecovering })
    expect((await claim()).ids).toEqual([3, 2])
    expect((await claim()).ids).toEqual([])
    ends(2)
    expect((await claim()).ids).toEqual([4])
    ends(4)
    expect((await claim()).ids).toEqual([1])
  })

  test('leave what is behind a suspect in its media item, in its order, and nothing else', async () => {
    const media = 'a'
    const stored = [{ media, crashes: 1 }, { media }, { media, crashes: 1 }, { media }, { media: 'b' }]
    const { claim, ends } = await claiming(stored, { isRecovering })
    expect((await claim()).ids).toEqual([5, 1])
    expect((await claim()).ids).toEqual([2])
    ends(1)
    expect((await claim()).ids).toEqual([3])
    expect((await claim()).ids).toEqual([4])
  })

  test('come 50 at a time, and not before the hold is over', async () => {
    const { claim } = await claiming(waiting(60), { isRecovering, holdMs: 60 })
    const began = performance.now()
    expect(await claim()).toMatchObject({ ids: idsFrom(1, 50), hasMore: true })
    expect(performance.now() - began).toBeGreaterThan(55)
    expect(await claim()).toMatchObject({ ids: idsFrom(51, 10), hasMore: false })
  })

  test('go on while the storage cannot record that, which is logged once', async () => {
    const { claim, store, errors, disk } = await claiming([{}], { isRecovering })
    disk.isBroken = true
    expect((await claim()).ids).toEqual([1])
    store()
    expect((await claim()).ids).toEqual([2])
    expect(errors).toEqual(['the inbox could not record which events start'])
  })

  test('are over although an event that was left cannot be read', async () => {
    const { claims, claim, damage, ends, recorded } = await claiming([{}, { media: 'a' }, { media: 'a' }], {
      isRecovering,
    })
    damage(2)
    expect((await claim()).ids).toEqual([1, 3])
    ends(1)
    ends(3)
    expect(claims.endsRecovery()).toBe(true)
    expect(recorded.at(-1)).toBe('recovered')
  })
})
