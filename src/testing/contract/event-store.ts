import type { EventOrder, InboxHost } from '../../inbox/inbox.ts'
import { SqlDeadLetters } from '../../inbox/sql/dead-letters.ts'
import type { ClaimedEvent } from '../../inbox/sql/event.ts'
import { SqlEvents } from '../../inbox/sql/events.ts'
import { readExpected } from '../../inbox/sql/expected.ts'
import { SqlJob } from '../../inbox/sql/job.ts'
import type { ClaimRequest, EventStore, OwedExpectationChanges, Settled } from '../../inbox/sql/store.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import { eventOf } from './handling.ts'
import { codeOf, type TransactionSubject } from './inbox-check.ts'
import { type Assertion, type Runner, skip } from './runner.ts'

/** A database under test, without tables at first. */
export interface EventStoreSubject {
  /** Opens a store as the next process would; a single-process database only after the previous one has ended. */
  open(host: InboxHost): MaybePromise<EventStore>
  /** Kills the process of a store and expires its lease. */
  crash(store: EventStore): MaybePromise<void>
  readonly transactions: TransactionSubject
  close?(): MaybePromise<void>
}

/** Optional parts of the contract. */
export interface EventStoreFeatures {
  /**
   * `true` if several processes share the database (the store has `shared`).
   * @defaultValue true
   */
  readonly shared?: boolean
}

/** Longest wait for a due retry, or for a store that recovers (ms). */
const patienceMs = 10_000

/** Plays the worker of an inbox on a store. */
class Process {
  readonly store: EventStore
  readonly events: SqlEvents
  readonly held = new Map<string, SqlJob>()
  #handedOver: ClaimedEvent[] = []

  constructor(store: EventStore) {
    this.store = store
    this.events = new SqlEvents(store.tables, store.reading)
  }

  async begin(): Promise<this> {
    const begun = new Promise<void>((resolve) => this.store.open(() => this.#begin().then(resolve)))
    await this.store.ready()
    await begun
    await this.store.shared?.takeOver()
    return this
  }

  #begin(): Promise<void> {
    return this.store.begin({
      heard() {},
      stored() {},
      handOver: (event) => void this.#handedOver.push(event),
      cutOff() {},
      lost() {},
      longRunning: () => undefined,
      isFull: () => false,
      load: () => ({ running: 0, bytes: 0, isPaused: false }),
    })
  }

  async accept(key: string, mediaId = `media of ${key}`, changes?: OwedExpectationChanges): Promise<boolean> {
    return this.store.accept({ accepted: eventOf(key, mediaId), owed: ['a'], changes })
  }

  /** Claims events and returns their keys in order, handed-over ones first. */
  async claim(request: Partial<ClaimRequest> = {}): Promise<string[]> {
    const held = [...this.held.values()].map(({ id, releases }) => ({ id, releases }))
    const ask = () => ({ limit: 100, withSuspect: true, held, heldBytes: 0, skippedMedia: [], ...request })
    const claimed = await this.store.claim(ask)
    const events = [...this.#handedOver.splice(0), ...(claimed?.events ?? [])]
    for (const event of events) this.held.set(event.accepted.event.key, new SqlJob(event, this.store))
    return events.map(({ accepted }) => accepted.event.key)
  }

  async claimed(count: number, request: Partial<ClaimRequest> = {}): Promise<string[]> {
    const keys: string[] = []
    for (const endsAt = performance.now() + patienceMs; keys.length < count && performance.now() < endsAt; ) {
      keys.push(...(await this.claim(request)))
      if (keys.length < count) await sleep(10)
    }
    return keys
  }

  job(key: string): SqlJob {
    const job = this.held.get(key)
    if (job === undefined) throw new Error(`${key} was not claimed`)
    return job
  }

  async settle(key: string, end: WithoutJob<Settled>): Promise<boolean> {
    const isOurs = await this.store.settle({ ...end, job: this.job(key) } as Settled)
    if (end.kind !== 'progress') this.held.delete(key)
    return isOurs
  }

  async handle(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.settle(key, { kind: 'handled', handlers: ['a'] })
  }
}

type WithoutJob<Each> = Each extends unknown ? Omit<Each, 'job'> : never

const retry = { kind: 'retry', delayMs: 0, completed: [], failed: undefined, counts: 1 } as const
const letter = (key: string) =>
  JSON.stringify({
    ...eventOf(key),
    receivedAt: new Date(0),
    key,
    attempts: 1,
    failures: [{ handler: 'a', message: 'no' }],
    diedAt: new Date(0),
  })

interface StoreCheck {
  readonly subject: EventStoreSubject
  next(order?: EventOrder): Promise<Process>
  /** Kills a process and starts the next one, which takes over. */
  crash(process: Process, order?: EventOrder): Promise<Process>
  expect(value: unknown): Assertion
}

/**
 * Tests that a database is a store of the SQL inbox: what it must keep besides the inbox contract.
 *
 * ```ts
 * eventStoreContract(() => mySubject(), { test, expect }, { shared: false })
 * ```
 * @param factory creates a fresh subject for each test
 * @param features optional parts that the store has; tests of the others are skipped
 */
export function eventStoreContract(
  factory: () => MaybePromise<EventStoreSubject>,
  { test, expect }: Runner,
  { shared = true }: EventStoreFeatures = {},
): void {
  const check = (name: string, run: (check: StoreCheck) => Promise<void>, needsShared = false) => {
    if (needsShared && !shared) return skip({ test }, name, 'one process at a time')
    test(name, async () => {
      const subject = await factory()
      const opened: EventStore[] = []
      const next = async (order?: EventOrder) => {
        const store = await subject.open({ ...host, order })
        opened.push(store)
        return new Process(store).begin()
      }
      const crash = async (process: Process, order?: EventOrder) => {
        await subject.crash(process.store)
        return next(order)
      }
      try {
        await run({ subject, next, crash, expect })
      } finally {
        for (const store of opened) await Promise.resolve(store.close()).catch(() => {})
        await subject.close?.()
      }
    })
  }
  acceptingChecks(check)
  orderChecks(check)
  overdueChecks(check)
  settlingChecks(check)
  crashChecks(check)
  transactionChecks(check)
  tableChecks(check)
}

type Declare = (name: string, run: (check: StoreCheck) => Promise<void>, needsShared?: boolean) => void

/** One array: a new one would be published as a change. */
const handlerNames = [{ name: 'a' }]

const host: InboxHost = {
  handle: async () => ({ status: 'done' }),
  handlersOf: () => ['a'],
  handlers: () => handlerNames,
  parse: () => {
    throw new Error('nothing is unreadable here')
  },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
  observe() {},
}

function acceptingChecks(check: Declare): void {
  check('stores one of 20 concurrent events with one key', async ({ next, expect }) => {
    const process = await next()
    const answers = await Promise.all(Array.from({ length: 20 }, () => process.accept('one')))
    expect(answers.filter((isNew) => isNew).length).toBe(1)
    expect(await process.claimed(1)).toEqual(['one'])
    expect(await process.claim()).toEqual([])
  })

  check('claims events in the order of acceptance, each once', async ({ next, expect }) => {
    const process = await next()
    const keys = Array.from({ length: 30 }, (_, index) => `key ${index}`)
    for (const key of keys) await process.accept(key, `media ${key.length}`)
    expect(await process.claimed(30)).toEqual(keys)
    expect(await process.claim()).toEqual([])
  })

  check('claims no more events than it is asked for, and no more due retries', async ({ next, expect }) => {
    const process = await next()
    const keys = ['a', 'b', 'c', 'd']
    for (const key of keys) await process.accept(key)
    expect(await process.claimed(1, { limit: 1 })).toEqual(['a'])
    await process.claimed(3)
    for (const key of keys) await process.settle(key, retry)
    const again = await process.claimed(1, { limit: 2 })
    expect(again.length <= 2).toBe(true)
  })

  check('claims what an earlier process has left, in the order of acceptance', async ({ next, crash, expect }) => {
    const process = await next()
    const keys = Array.from({ length: 120 }, (_, index) => `key ${index}`)
    for (const key of keys) await process.accept(key, 'media')
    const later = await crash(process)
    await later.accept('new', 'media')
    const claimed: string[] = []
    while (claimed.length < 121) {
      const batch = await later.claimed(1)
      claimed.push(...batch)
      await later.handle(...batch)
    }
    expect(claimed).toEqual([...keys, 'new'])
  })

  check(
    'keeps what another process holds, and the media items of it',
    async ({ next, expect }) => {
      const [one, other] = [await next(), await next()]
      await one.accept('first', 'media')
      expect(await one.claimed(1)).toEqual(['first'])
      await one.accept('second', 'media')
      await one.accept('free')
      expect(await other.claimed(1)).toEqual(['free'])
      expect(await other.claim()).toEqual([])
      await one.handle('first')
      expect(await other.claimed(1)).toEqual(['second'])
    },
    true,
  )

  check('gives up every claim but those that are kept', async ({ next, expect }) => {
    const process = await next()
    for (const key of ['kept', 'lost']) await process.accept(key)
    await process.claimed(2)
    process.held.delete('lost')
    await process.store.keepOnly([process.job('kept')])
    expect(await process.claimed(1)).toEqual(['lost'])
  })

  check('turns what is overdue into an event, and what has ended into none', async ({ next, expect }) => {
    const process = await next()
    const changes = (key: string, ends: readonly string[] = []): OwedExpectationChanges => {
      const overdue = { ...eventOf(`overdue ${key}`, 'media'), trace: undefined }
      const begins = ends.length > 0 ? [] : [{ rule: key, dueAt: new Date(Date.now() - 1), overdue, owed: ['a'] }]
      return { at: new Date(), begins, ends }
    }
    await process.accept('begin', 'media', changes('missing'))
    await process.accept('begin too', 'media', changes('come'))
    await process.accept('end', 'media', changes('end', ['come']))
    expect((await readExpected(process.store.tables)).map(({ rule }) => rule)).toEqual(['missing'])
    await process.store.acceptDue()
    expect((await process.claimed(4)).at(-1)).toBe('overdue missing')
    expect((await readExpected(process.store.tables)).length).toBe(0)
    expect(await process.store.acceptDue()).toBe(Number.POSITIVE_INFINITY)
  })
}

function overdueChecks(check: Declare): void {
  check('claims what is overdue before what was accepted after it', async ({ next, expect }) => {
    const process = await next()
    const overdue = { ...eventOf('overdue', 'media'), trace: undefined }
    const begins = [{ rule: 'rule', dueAt: new Date(Date.now() - 1), overdue, owed: ['a'] }]
    // An empty claim, after which new events may be handed over.
    expect(await process.claim()).toEqual([])
    await process.accept('begin', 'media', { at: new Date(), begins, ends: [] })
    expect(await process.claimed(1)).toEqual(['begin'])
    await process.store.acceptDue()
    await process.accept('later', 'media')
    expect(await process.claimed(2)).toEqual(['overdue', 'later'])
  })
}

function settlingChecks(check: Declare): void {
  check('remembers a handled event', async ({ next, crash, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    expect(await process.settle('one', { kind: 'handled', handlers: ['a'] })).toBe(true)
    expect(await process.accept('one')).toBe(false)
    expect((await process.events.get('one'))?.state).toBe('handled')
    const later = await crash(process)
    expect(await later.accept('one')).toBe(false)
    expect(await later.claim()).toEqual([])
  })

  check('claims a retry when it is due, and not earlier', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    const failed = JSON.stringify([{ number: 1, failures: [{ handler: 'a', message: 'no' }], failedAt: new Date(0) }])
    const recordedAt = performance.now()
    await process.settle('one', { ...retry, delayMs: 300, completed: ['b'], failed })
    expect(await process.claim()).toEqual([])
    expect(await process.claimed(1)).toEqual(['one'])
    expect(performance.now() - recordedAt >= 299).toBe(true)
    const { number, completed, failedAttempts } = process.job('one')
    expect([number, completed, failedAttempts.length]).toEqual([2, ['b'], 1])
  })

  check('tells when the next retry is due', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    await process.settle('one', { ...retry, delayMs: 60_000 })
    const ask = () => ({ limit: 1, withSuspect: true, held: [], heldBytes: 0, skippedMedia: [] })
    const { nextInMs = 0 } = (await process.store.claim(ask)) ?? {}
    expect(nextInMs > 30_000 && nextInMs <= 60_000).toBe(true)
  })

  check('counts no attempt for a release', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    await process.settle('one', { kind: 'release', delayMs: 0, completed: ['b'], awaits: [] })
    expect(await process.claimed(1)).toEqual(['one'])
    expect([process.job('one').number, process.job('one').completed]).toEqual([1, ['b']])
  })

  check('counts no attempt that a retry leaves out', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    await process.settle('one', { ...retry, counts: 0 })
    expect(await process.claimed(1)).toEqual(['one'])
    expect(process.job('one').number).toBe(1)
  })

  check('adds completed handlers to those that are recorded', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    await process.settle('one', { kind: 'progress', completed: ['b'] })
    await process.settle('one', { ...retry, completed: ['c'] })
    await process.claimed(1)
    expect(process.job('one').completed.toSorted()).toEqual(['b', 'c'])
  })

  check('records progress before the end that follows it at once', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    const job = process.job('one')
    const progress = process.store.settle({ kind: 'progress', job, completed: ['b'] })
    const end = process.settle('one', { ...retry, completed: ['c'] })
    expect(await Promise.all([progress, end])).toEqual([true, true])
    await process.claimed(1)
    expect(process.job('one').completed.toSorted()).toEqual(['b', 'c'])
  })

  check('makes a retry due on request', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    await process.claimed(1)
    expect(await process.events.retryNow('one')).toBe(false)
    await process.settle('one', { ...retry, delayMs: 60_000 })
    expect(await process.events.retryNow('one')).toBe(true)
    process.store.widenNextClaim('due')
    expect(await process.claimed(1)).toEqual(['one'])
  })

  check('keeps a dead letter, and claims it again once it is replayed', async ({ next, expect }) => {
    const process = await next()
    const { store } = process
    await process.accept('one')
    await process.claimed(1)
    await process.settle('one', { ...retry, completed: ['b'] })
    await process.claimed(1)
    await process.settle('one', { kind: 'dead', completed: ['c'], letter: letter('one') })
    expect(await process.claim()).toEqual([])
    const deadLetters = new SqlDeadLetters(store.tables, store.replays)
    expect((await deadLetters.get('one'))?.completed.toSorted()).toEqual(['b', 'c'])
    expect(await process.accept('one')).toBe(false)
    expect(await deadLetters.replay('one')).toBe(true)
    store.widenNextClaim('due')
    expect(await process.claimed(1)).toEqual(['one'])
    expect([process.job('one').number, process.job('one').completed.toSorted()]).toEqual([1, ['b', 'c']])
    expect((await deadLetters.list()).length).toBe(0)
  })
}

function orderChecks(check: Declare): void {
  check(
    'lets a retry be overtaken, unless the order is strict',
    async ({ next, crash, expect }) => {
      let process = await next('strict')
      for (const [key, media] of Object.entries({ one: 'media', two: 'media', other: 'other' }))
        await process.accept(key, media)
      await process.claimed(3)
      await process.settle('one', { ...retry, delayMs: 60_000 })
      process = await crash(process, 'strict')
      expect(await process.claimed(1)).toEqual(['other'])
      expect(await process.claim()).toEqual([])
      expect(await process.events.retryNow('one')).toBe(true)
      process.store.widenNextClaim('due')
      expect(await process.claimed(2)).toEqual(['one', 'two'])
      await process.settle('one', { ...retry, delayMs: 60_000 })
      const loose = await crash(process)
      expect((await loose.claimed(2)).toSorted()).toEqual(['other', 'two'])
    },
    true,
  )
}

function crashChecks(check: Declare): void {
  check(
    'records nothing of a process whose events were taken over',
    async ({ next, crash, expect }) => {
      const process = await next()
      for (const key of ['handled', 'retried', 'dead']) await process.accept(key)
      await process.claimed(3)
      const later = await crash(process)
      expect(await process.settle('handled', { kind: 'handled', handlers: ['a'] })).toBe(false)
      expect(await process.settle('retried', { ...retry, delayMs: 60_000 })).toBe(false)
      expect(await process.settle('dead', { kind: 'dead', completed: [], letter: letter('dead') })).toBe(false)
      const keys: string[] = []
      while (keys.length < 3) {
        const batch = await later.claimed(1)
        keys.push(...batch)
        await later.handle(...batch)
      }
      expect(keys.toSorted()).toEqual(['dead', 'handled', 'retried'])
    },
    true,
  )

  check('hands out one suspect at a time, and healthy events beside it', async ({ next, crash, expect }) => {
    // Crash twice: some stores can't know what ran in the first process.
    let process = await crash(await withHeld(await next(), 'one', 'two'))
    await process.claimed(1)
    process = await crash(process)
    await process.accept('healthy')
    const claimed = await process.claimed(2)
    const suspects = claimed.filter((key) => process.job(key).isSuspect)
    expect([suspects.length, claimed.includes('healthy')]).toEqual([1, true])
    expect((await process.claim({ withSuspect: false })).filter((key) => process.job(key).isSuspect)).toEqual([])
  })

  const afterCrashes = async ({ next, crash }: StoreCheck, ...keys: readonly string[]) => {
    let process = await crash(await withHeld(await next(), ...keys))
    await process.claimed(1)
    process = await crash(process)
    await process.store.end()
    await process.store.close()
    return next()
  }

  check('counts each crash once, although the next process ends in order', async (subject) => {
    const later = await afterCrashes(subject, 'one')
    await later.claimed(1)
    subject.expect(later.job('one').crashes).toBe(2)
  })

  check('hands out one suspect at a time after a process that has ended in order', async (subject) => {
    const { expect } = subject
    const later = await afterCrashes(subject, 'one', 'two')
    const claimed = await later.claimed(1)
    expect(claimed.filter((key) => later.job(key).isSuspect).length).toBe(1)
    expect((await later.claim({ withSuspect: false })).filter((key) => later.job(key).isSuspect)).toEqual([])
  })

  check('hands out nothing from behind a suspect in its media item', async ({ next, crash, expect }) => {
    const first = await next()
    await first.accept('suspect', 'media')
    await first.claimed(1)
    let process = await crash(first)
    await process.claimed(1)
    process = await crash(process)
    await process.accept('behind', 'media')
    expect(await process.claim({ withSuspect: false })).toEqual([])
    expect(await process.claimed(1)).toEqual(['suspect'])
    await process.handle('suspect')
    expect(await process.claimed(1)).toEqual(['behind'])
  })

  check('counts a crash for each process that held an event, and none after an attempt has ended', async (subject) => {
    const { next, crash, expect } = subject
    let process = await withHeld(await next(), 'one')
    for (let crashes = 0; crashes < 3; crashes++) {
      process = await crash(process)
      await process.claimed(1)
    }
    expect(process.job('one').crashes).toBe(3)
    await process.settle('one', retry)
    await process.claimed(1)
    expect(process.job('one').crashes).toBe(0)
  })

  check('suspects an event although many of another media item were held before it', async (subject) => {
    const { next, crash, expect } = subject
    const first = await next()
    for (let index = 0; index < 40; index++) await first.accept(`hot ${index}`, 'hot')
    await first.accept('culprit')
    await first.claimed(41)
    let process = await crash(first)
    for (let crashes = 1; crashes < 3; crashes++) {
      while (!process.held.has('culprit')) await process.claimed(1)
      process = await crash(process)
    }
    while (!process.held.has('culprit'))
      await process.handle(...(await process.claimed(1)).filter((key) => key !== 'culprit'))
    expect(process.job('culprit').isSuspect).toBe(true)
  })

  check('counts no crash for an event that was not held', async ({ next, crash, expect }) => {
    const first = await next()
    await first.accept('one', 'media')
    let process = await crash(first)
    for (let starts = 0; starts < 3; starts++) process = await crash(process)
    await process.claimed(1)
    expect(process.job('one').crashes).toBe(0)
  })

  check('gives its events to the next process when it ends in order, and no crash with them', async (subject) => {
    const { next, expect } = subject
    const process = await withHeld(await next(), 'one')
    await process.store.end()
    await process.store.close()
    const later = await next()
    expect(await later.claimed(1)).toEqual(['one'])
    expect(later.job('one').crashes).toBe(0)
  })

  check(
    'gives no events of another process when it ends in order',
    async ({ next, expect }) => {
      const other = await withHeld(await next(), 'kept')
      const process = await withHeld(await next(), 'given')
      await process.store.end()
      const later = await next()
      expect(await later.claimed(1)).toEqual(['given'])
      expect(await other.settle('kept', { kind: 'handled', handlers: ['a'] })).toBe(true)
    },
    true,
  )
}

async function withHeld(process: Process, ...keys: readonly string[]): Promise<Process> {
  for (const key of keys) await process.accept(key)
  await process.claimed(keys.length)
  return process
}

function transactionChecks(check: Declare): void {
  const scopeOf = (handler: string) => ({ handler, signal: new AbortController().signal })
  const writing = ({ transactions }: EventStoreSubject, process: Process, text: string) => {
    const attempt = process.job('one').begin()
    return process.store.transact(attempt, scopeOf('a'), (client) => transactions.write(client, text))
  }

  check('commits what a handler writes with the record that it has completed, once', async (subject) => {
    const { next, expect } = subject
    const process = await withHeld(await next(), 'one')
    await writing(subject.subject, process, 'first')
    expect(await codeOf(() => writing(subject.subject, process, 'second'))).toBe('lease_lost')
    expect(await subject.subject.transactions.texts()).toEqual(['first'])
    await process.settle('one', retry)
    await process.claimed(1)
    expect(process.job('one').completed).toEqual(['a'])
  })

  check('commits nothing of a function that throws, nor its record', async ({ subject, next, expect }) => {
    const process = await withHeld(await next(), 'one')
    const failing = process.store.transact(process.job('one').begin(), scopeOf('a'), (client) => {
      const written = subject.transactions.write(client, 'undone')
      if (!(written instanceof Promise)) throw new Error('no')
      return written.then(() => {
        throw new Error('no')
      })
    })
    expect(await failing.catch((error: Error) => error.message)).toBe('no')
    expect(await subject.transactions.texts()).toEqual([])
    await process.settle('one', retry)
    await process.claimed(1)
    expect(process.job('one').completed).toEqual([])
  })

  check('ends a transaction whose signal is aborted, though its function never settles', async (subject) => {
    const { transactions } = subject.subject
    const process = await withHeld(await subject.next(), 'one')
    const [attempt, handler] = [process.job('one').begin(), new AbortController()]
    const aborting = process.store.transact(attempt, { handler: 'a', signal: handler.signal }, (client) => {
      const written = transactions.write(client, 'aborted')
      const end = () => handler.abort(new Error('out of time'))
      // A synchronous transaction must not return a promise.
      return written instanceof Promise ? written.then(end).then(() => new Promise<never>(() => {})) : end()
    })
    subject.expect(await aborting.catch((error: Error) => error.message)).toBe('out of time')
    subject.expect(await transactions.texts()).toEqual([])
    await process.settle('one', retry)
    await process.claimed(1)
    subject.expect(process.job('one').completed).toEqual([])
  })

  check(
    'commits nothing of a process whose event was taken over',
    async ({ subject, next, crash, expect }) => {
      const process = await withHeld(await next(), 'one')
      await crash(process)
      expect(await codeOf(() => writing(subject, process, 'late'))).toBe('lease_lost')
      expect(await subject.transactions.texts()).toEqual([])
    },
    true,
  )
}

function tableChecks(check: Declare): void {
  check('changes rows in one transaction, and tells how many', async ({ next, expect }) => {
    const { store } = await next()
    const add = (handler: string) => ({
      sql: 'INSERT INTO $pause (handler, since, paused_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
      values: [handler, 1, null],
    })
    expect(await store.tables.change([add('a'), add('b'), add('a')])).toEqual([1, 1, 0])
    const broken = { sql: 'INSERT INTO $pause (handler, since) VALUES ($1, $2)', values: ['d', null] }
    const isRejected = await store.tables.change([add('c'), broken]).then(
      () => false,
      () => true,
    )
    expect(isRejected).toBe(true)
    const rows = await store.tables.read<{ handler: string }>('SELECT handler FROM $pause ORDER BY handler')
    expect(rows.map(({ handler }) => handler)).toEqual(['a', 'b'])
  })

  check('counts and lists events by their states', async ({ next, expect }) => {
    const process = await next()
    for (const key of ['handled', 'retrying', 'dead', 'waiting']) await process.accept(key)
    await process.claimed(4)
    await process.handle('handled')
    await process.settle('retrying', { ...retry, delayMs: 60_000 })
    await process.settle('dead', { kind: 'dead', completed: [], letter: letter('dead') })
    const { retrying, deadLetters } = await process.events.stats()
    expect([retrying, deadLetters]).toEqual([1, 1])
    for (const state of ['handled', 'retrying', 'dead'] as const) {
      const { events } = await process.events.list({ state })
      expect(events.map(({ key }) => key)).toEqual([state])
    }
    const { events } = await process.events.list({ order: 'oldest' })
    expect(events.map(({ key }) => key)).toEqual(['handled', 'retrying', 'dead', 'waiting'])
  })

  check('forgets keys of ended events, and no others', async ({ next, expect }) => {
    const process = await withHeld(await next(), 'one')
    await process.store.expire()
    expect(await process.accept('one')).toBe(false)
  })
}
