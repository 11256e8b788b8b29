import type { EventOrder, InboxHost } from '../../../src/inbox/inbox.ts'
import type { Database } from '../../../src/inbox/sql/database.ts'
import type { MaybePromise } from '../../../src/internal/maybe-promise.ts'
import { sleep } from '../../../src/internal/timers.ts'
import { type Runner, skip } from '../../../src/testing/runner.ts'
import {
  codeOfTransaction,
  type DatabaseCheck,
  DatabaseProcess,
  type DatabaseSubject,
  type DeclareCheck,
  ended,
  eventIn,
  expectation,
  freely,
  handlers,
  keysOf,
  takeOver,
} from './database-process.ts'
import { sharedChecks } from './database-sharing.ts'

/** Optional parts of the contract. */
export interface DatabaseFeatures {
  /**
   * `true` if several processes share the database (its statements have `shared`).
   * @defaultValue true
   */
  readonly shared?: boolean
}

/**
 * Tests that a database can carry the SQL inbox: what it must keep besides the inbox contract, when answers are lost,
 * steps are repeated and processes end. With several processes, each interleaving is written out.
 *
 * ```ts
 * databaseContract(() => mySubject(), { test, expect }, { shared: false })
 * ```
 * @param factory creates a fresh subject for each test
 * @param features optional parts that the database has; tests of the others are skipped
 */
export function databaseContract(
  factory: () => MaybePromise<DatabaseSubject>,
  { test, expect }: Runner,
  { shared = true }: DatabaseFeatures = {},
): void {
  const check: DeclareCheck = (name, run) =>
    test(name, async () => {
      const subject = await factory()
      const opened: Database[] = []
      const next = async (order?: EventOrder) => {
        const database = await subject.open({ ...host, order })
        opened.push(database)
        return new DatabaseProcess(database).begin()
      }
      try {
        await run({ subject, next, expect })
      } finally {
        for (const database of opened) await Promise.resolve(database.close()).catch(() => {})
        await subject.close?.()
      }
    })
  laneChecks(check)
  settlingChecks(check)
  crashChecks(check)
  replayChecks(check)
  sharedChecks(shared ? check : (name) => skip({ test }, name, 'one process at a time'))
}

const host: InboxHost = {
  handle: async () => ({ status: 'done' }),
  handlersOf: () => ['a', 'b'],
  handlers: () => handlers,
  parse: () => {
    throw new Error('nothing is unreadable here')
  },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
  observe() {},
}

function laneChecks(check: DeclareCheck): void {
  check('looks at a resting lane when its first retry is due, in loose order', async ({ next, expect }) => {
    const process = await next()
    for (const key of ['fails', 'at a limit']) await process.accept(key, 'media')
    const lane = await process.lane()
    const retry = ended(lane, eventIn(lane), { kind: 'retry', delayMs: 1_000 })
    const [resting] = await process.settle(lane, [retry], { release: { hasMore: true, restMs: 60_000 } })
    const { readyInMs = 0 } = resting ?? {}
    expect(readyInMs > 0 && readyInMs <= 2_000).toBe(true)
    const again = await process.lane()
    expect(keysOf(again)).toEqual(['fails', 'at a limit'])
    const [due] = await process.settle(again, [], { release: { hasMore: true, restMs: 60_000 } })
    expect([(due?.readyInMs ?? 0) > 0, await process.claim()]).toEqual([true, []])
    expect(keysOf(await process.lane())).toEqual(['fails', 'at a limit'])
  })

  check('stores a key once, in one batch too', async ({ next, expect }) => {
    const process = await next()
    const events = ['one', 'two', 'one'].map((key) => process.newEvent(key, 'media'))
    expect(await process.database.run(process.steps.accept(events))).toEqual(['accepted', 'accepted', 'duplicate'])
    expect(await process.accept('two', 'another')).toBe('duplicate')
    expect(keysOf(await process.lane())).toEqual(['one', 'two'])
    expect(await process.claim()).toEqual([])
  })

  check('claims a lane once, with its events in the order of acceptance', async ({ next, expect }) => {
    const process = await next()
    const keys = Array.from({ length: 300 }, (_, index) => `key ${index}`)
    for (const key of keys) await process.accept(key, 'media')
    const lane = await process.lane()
    expect([keysOf(lane), lane.hasMore, lane.crashes]).toEqual([keys.slice(0, lane.events.length), true, 0])
    expect(await process.claim()).toEqual([])
    const ends = lane.events.map((event) => ended(lane, event))
    await process.settle(lane, ends, { release: { ...freely, hasMore: true } })
    const { length } = lane.events
    const later = await process.lane()
    expect(later.events.length > 0).toBe(true)
    expect(keysOf(later)).toEqual(keys.slice(length, length + later.events.length))
  })

  check('tells media items and keys of any text apart', async ({ next, expect }) => {
    const process = await next()
    const long = 'x'.repeat(65_536)
    const texts = ['a', 'A', 'ä', 'a\0b', 'a\0c', '\ud800', '\ud801', `${long}1`, `${long}2`, ' a', "'"]
    for (const text of texts) expect(await process.accept(text, text)).toBe('accepted')
    const lanes = await process.claim()
    expect(lanes.flatMap(keysOf).toSorted()).toEqual(texts.toSorted())
    expect(lanes.length).toBe(texts.length)
  })

  check('makes a lane ready for what comes while it is held, and for no duplicate', async ({ next, expect }) => {
    const process = await next()
    await process.accept('first', 'media')
    const first = await process.lane()
    await process.accept('first', 'media')
    const [idle] = await process.settle(first, [ended(first, eventIn(first))])
    expect(idle?.readyInMs).toBe(Number.POSITIVE_INFINITY)
    await process.accept('second', 'media')
    const second = await process.lane()
    await process.accept('third', 'media')
    const [ready] = await process.settle(second, [ended(second, eventIn(second))])
    expect(ready?.readyInMs).toBe(0)
    expect(keysOf(await process.lane())).toEqual(['third'])
  })

  check('lets a lane rest for a time, with what nobody has tried', async ({ next, expect }) => {
    const process = await next()
    await process.accept('held back', 'media')
    const lane = await process.lane()
    const [resting] = await process.settle(lane, [], { release: { hasMore: false, restMs: 1_000 } })
    expect((resting?.readyInMs ?? 0) > 0).toBe(true)
    expect(await process.claim()).toEqual([])
    expect(keysOf(await process.lane())).toEqual(['held back'])
  })
}

function settlingChecks(check: DeclareCheck): void {
  /** Claims a lane with the events `1`, `2` and `3`. */
  async function withThree({ next }: DatabaseCheck, order?: EventOrder) {
    const process = await next(order)
    for (const key of ['1', '2', '3']) await process.accept(key, 'media')
    return { process, lane: await process.lane() }
  }

  check('records no settle that overtakes an earlier one', async (subject) => {
    const { process, lane } = await withThree(subject)
    const { expect } = subject
    const [one, two] = [ended(lane, eventIn(lane, 0)), ended(lane, eventIn(lane, 1))]
    expect(await process.settle(lane, [two], { first: one.id })).toEqual([])
    expect((await process.settle(lane, [one])).length).toBe(1)
    const [recorded] = await process.settle(lane, [two], {
      first: one.id,
      release: { hasMore: true, restMs: undefined },
    })
    expect(recorded?.readyInMs).toBe(0)
    expect(keysOf(await process.lane())).toEqual(['3'])
  })

  check('records a settle once that is sent again', async (subject) => {
    const { process, lane } = await withThree(subject)
    const { expect } = subject
    const retry = ended(lane, eventIn(lane), { kind: 'retry', failed: '[{"number":1}]' })
    await process.settle(lane, [retry])
    await process.settle(lane, [retry], { release: { hasMore: true, restMs: undefined } })
    const again = await process.lane()
    const { attempts, failed, isRetry, dueInMs } = eventIn(again)
    expect([attempts, JSON.parse(failed ?? ''), isRetry, dueInMs]).toEqual([1, [{ number: 1 }], true, 0])
    expect(keysOf(again)).toEqual(['1', '2', '3'])
  })

  check('frees no lane by a release that is sent again after the next claim', async (subject) => {
    const { process, lane } = await withThree(subject)
    const { expect } = subject
    await process.settle(lane, [ended(lane, eventIn(lane))], { release: { hasMore: true, restMs: undefined } })
    const again = await process.lane()
    expect(again.turn > lane.turn).toBe(true)
    expect(await process.settle(lane, [ended(lane, eventIn(lane))], { release: freely })).toEqual([])
    await process.accept('4', 'media')
    expect(await process.claim()).toEqual([])
  })

  check('is ready when a retry is due that was recorded with the release', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    const lane = await process.lane()
    const [released] = await process.settle(lane, [ended(lane, eventIn(lane), { kind: 'retry', delayMs: 1_000 })])
    const { readyInMs = 0 } = released ?? {}
    expect(readyInMs > 0 && readyInMs <= 2_000).toBe(true)
    expect(await process.claim()).toEqual([])
    const again = await process.lane()
    await process.settle(again, [ended(again, eventIn(again))])
    const [idle] = await process.settle(again, [])
    expect([idle, await process.claim()]).toEqual([undefined, []])
  })

  /** Records a retry of the first of three events with the release of their lane, and accepts a fourth. */
  async function withRetry(subject: DatabaseCheck, order: EventOrder): Promise<readonly string[]> {
    const { process, lane } = await withThree(subject, order)
    const retry = ended(lane, eventIn(lane), { kind: 'retry', delayMs: 60_000 })
    await process.settle(lane, [retry], { release: { hasMore: true, restMs: undefined } })
    await process.accept('4', 'media')
    return (await process.claim()).flatMap(keysOf)
  }

  check('lets others pass a retry in loose order', async (subject) => {
    subject.expect(await withRetry(subject, 'loose')).toEqual(['2', '3', '4'])
  })

  check('lets nothing pass a retry in strict order', async (subject) => {
    subject.expect(await withRetry(subject, 'strict')).toEqual([])
  })

  check('adds to what a transaction has recorded', async (subject) => {
    const { process, lane } = await withThree(subject)
    const { expect } = subject
    const held = process.held(lane, eventIn(lane))
    const scope = { handler: 'a', signal: new AbortController().signal }
    await process.database.transaction(held, scope, () => 'committed')
    const retry = ended(lane, eventIn(lane), { kind: 'retry', completed: ['b'] })
    await process.settle(lane, [retry], { release: freely })
    const again = eventIn(await process.lane())
    expect(JSON.parse(again.completed).toSorted()).toEqual(['a', 'b'])
    const lost = await codeOfTransaction(process, held)
    expect(lost).toBe('lease_lost')
  })
}

function crashChecks(check: DeclareCheck): void {
  /** Starts the next process after one has died. */
  async function takenOver({ subject, next }: DatabaseCheck, dead: DatabaseProcess): Promise<DatabaseProcess> {
    await subject.crash(dead)
    const process = await next()
    while (await takeOver(process));
    return process
  }

  check('marks the lanes of a process that died, and no others', async (subject) => {
    const { next, expect } = subject
    const dead = await next()
    await dead.accept('held')
    await dead.lane()
    await dead.accept('waiting')
    const process = await takenOver(subject, dead)
    const [waiting, ...others] = await process.claim()
    expect([waiting && keysOf(waiting), waiting?.crashes, others]).toEqual([['waiting'], 0, []])
    const held = await process.lane({ marked: 1 })
    expect([keysOf(held), held.crashes]).toEqual([['held'], 1])
  })

  check('marks nothing if a process leaves', async ({ subject, next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.lane()
    await process.leave()
    await subject.crash(process)
    const later = await next()
    expect((await later.lane()).crashes).toBe(0)
  })

  check('counts an event before it starts, once, and only for who has the lane', async (subject) => {
    const { next, expect } = subject
    const dead = await next()
    await dead.accept('one')
    const lane = await dead.lane()
    const held = dead.held(lane, eventIn(lane))
    const count = () => dead.database.run(dead.steps.count(held, 0, 1))
    expect([await count(), await count()]).toEqual([true, true])
    const process = await takenOver(subject, dead)
    const marked = await process.lane({ marked: 1 })
    expect(eventIn(marked).crashes).toBe(1)
    const { steps, database } = process
    expect(await database.run(steps.count({ ...held, owner: process.owner, turn: lane.turn }, 1, 2))).toBe(false)
    await process.settle(marked, [], { release: { hasMore: true, restMs: undefined } })
    expect((await process.lane({ marked: 1 })).crashes).toBe(1)
  })

  check('clears the mark of a lane when it is told to, with the crashes of the event that ended', async (subject) => {
    const { next, expect } = subject
    const dead = await next()
    for (const key of ['1', '2']) await dead.accept(key, 'media')
    await dead.lane()
    const process = await takenOver(subject, dead)
    const marked = await process.lane({ marked: 1 })
    await process.database.run(process.steps.count(process.held(marked, eventIn(marked)), 0, 1))
    const retry = ended(marked, eventIn(marked), { kind: 'retry' })
    await process.settle(marked, [retry], { clear: true, release: { hasMore: true, restMs: undefined } })
    const lane = await process.lane()
    expect([lane.crashes, lane.events.map(({ crashes }) => crashes)]).toEqual([0, [0, 0]])
  })
}

function replayChecks(check: DeclareCheck): void {
  check('replays a dead letter at the end of its lane, without its completed handlers', async ({ next, expect }) => {
    const process = await next()
    await process.accept('dead', 'media')
    const lane = await process.lane()
    const { id } = eventIn(lane)
    await process.settle(lane, [ended(lane, eventIn(lane), { kind: 'dead', completed: ['a'] })])
    expect(await process.claim()).toEqual([])
    await process.accept('later', 'media')
    const replay = () => process.database.run(process.steps.replay([{ id, media: lane.media }]))
    expect([await replay(), await replay()]).toEqual([[id], []])
    const again = await process.lane()
    expect(keysOf(again)).toEqual(['later', 'dead'])
    const { attempts, completed, owed } = eventIn(again, 1)
    expect([attempts, JSON.parse(completed), JSON.parse(owed ?? '')]).toEqual([0, ['a'], ['a', 'b']])
  })

  const overdueOf = async (process: DatabaseProcess) => (await process.database.run(process.steps.overdue(10))).overdue

  check('fires an overdue expectation once', async ({ next, expect }) => {
    const process = await next()
    await process.accept('begins', 'media', expectation(process).begins)
    const overdue = await overdueOf(process)
    const fire = () => process.database.run(process.steps.fire(overdue))
    const fired = await Promise.all([fire(), fire()])
    expect(fired.reduce((sum, count) => sum + count, 0)).toBe(1)
    const lane = await process.lane()
    expect(keysOf(lane)).toEqual(['begins', 'overdue media'])
    expect(JSON.parse(eventIn(lane, 1).owed ?? '')).toEqual(['a', 'b'])
    expect(await overdueOf(process)).toEqual([])
  })

  check(
    'fires no expectation that ends after it was found overdue, or ended before it began',
    async ({ next, expect }) => {
      const process = await next()
      const { begins, ends } = expectation(process)
      await process.accept('begins', 'media', begins)
      const overdue = await overdueOf(process)
      await process.accept('ends', 'media', ends)
      expect(await process.database.run(process.steps.fire(overdue))).toBe(0)
      await process.accept('begins again', 'media', begins)
      expect(await overdueOf(process)).toEqual([])
      expect(keysOf(await process.lane())).toEqual(['begins', 'ends', 'begins again'])
    },
  )

  check('stores the events of an unreadable delivery in its place, once, with what they expect', async (subject) => {
    const { next, expect } = subject
    const process = await next()
    const { database, steps } = process
    const hash = database.hashKey('unreadable')
    for (const byte of [1, 2]) await database.run(steps.keep({ hash, head: '{}', body: new Uint8Array([byte]) }))
    expect(await process.claim()).toEqual([])
    const event = process.newEvent('readable', 'media', expectation(process).begins)
    const replace = () => database.run(steps.replace(hash, [event, process.newEvent('another', 'media')]))
    expect([await replace(), await replace()]).toEqual([['accepted', 'accepted'], 'gone'])
    expect(keysOf(await process.lane())).toEqual(['readable', 'another'])
    expect((await overdueOf(process)).length).toBe(1)
  })

  check('makes a retry due at once when it is asked to, and nothing else', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one', 'media')
    const retryNow = () => process.database.run(process.steps.retry(process.database.hashKey('one')))
    expect(await retryNow()).toBe(false)
    const lane = await process.lane()
    expect(await retryNow()).toBe(false)
    await process.settle(lane, [ended(lane, eventIn(lane), { kind: 'retry', delayMs: 60_000 })])
    expect([await process.claim(), await retryNow(), await retryNow()]).toEqual([[], true, false])
    const again = await process.lane()
    expect([keysOf(again), eventIn(again).attempts]).toEqual([['one'], 1])
  })

  check('forgets what has ended, and reads nothing old when its lane comes back', async ({ next, expect }) => {
    const process = await next()
    for (const key of ['handled', 'dead']) await process.accept(key, 'media')
    const lane = await process.lane()
    const [handled, dead] = [eventIn(lane), eventIn(lane, 1)]
    await process.settle(lane, [ended(lane, handled), ended(lane, dead, { kind: 'dead' })])
    await sleep(100)
    for (let pages = 0; pages < 5; pages++) await process.database.run(process.steps.expire())
    expect(await process.accept('handled', 'media')).toBe('accepted')
    expect(await process.accept('dead', 'media')).toBe('duplicate')
    expect(keysOf(await process.lane())).toEqual(['handled'])
  })
}
