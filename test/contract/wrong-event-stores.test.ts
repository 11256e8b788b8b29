import { describe, expect, test } from 'vitest'
import type { InboxHost } from '../../src/inbox/inbox.ts'
import type { EventStore } from '../../src/inbox/sql/store.ts'
import { sleep } from '../../src/internal/timers.ts'
import { type EventStoreSubject, eventStoreContract } from '../../src/testing/contract/event-store.ts'
import type { Runner } from '../../src/testing/contract/runner.ts'
import { failuresOf, type Wrong } from './failures-of.ts'
import { pgliteStores } from './postgres-stores.ts'
import { sqliteStores } from './sqlite-stores.ts'

/** Stores that differ from the right ones. */
const wrongly =
  (subjects: () => Promise<EventStoreSubject>, wrong: Wrong<EventStore>) => async (): Promise<EventStoreSubject> => {
    const subject = await subjects()
    const rights = new Map<EventStore, EventStore>()
    return {
      ...subject,
      async open(host) {
        const right = await subject.open(host)
        const differs = wrong(right)
        const store = new Proxy(right, {
          get(target, name) {
            if (Object.hasOwn(differs, name)) return Reflect.get(differs, name)
            const value = Reflect.get(target, name, target)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
        rights.set(store, right)
        return store
      },
      crash: (store) => subject.crash(rights.get(store) as EventStore),
    }
  }

/** The fault, the store that has it, and the check that catches it. */
type Fault = [fault: string, wrong: Wrong<EventStore>, caughtBy: string]

const wrongStores: Fault[] = [
  [
    'says that every event is new',
    (store) => ({ accept: async (event) => (await store.accept(event)) || true }),
    'stores one of 20 concurrent events with one key',
  ],
  [
    'hands out what is held',
    (store) => ({
      async claim(ask) {
        await store.keepOnly([])
        return store.claim(() => ({ ...ask(), held: [] }))
      },
    }),
    'claims events in the order of acceptance, each once',
  ],
  [
    'hands out all that is due',
    (store) => ({ claim: (ask) => store.claim(() => ({ ...ask(), limit: 100 })) }),
    'claims no more events than it is asked for, and no more due retries',
  ],
  [
    'hands out the newest events first',
    (store) => ({
      async claim(ask) {
        const claimed = await store.claim(ask)
        return claimed && { ...claimed, events: claimed.events.toReversed() }
      },
    }),
    'claims what an earlier process has left, in the order of acceptance',
  ],
  [
    'stores what is overdue behind the next event',
    (store) => {
      let isDue = false
      return {
        async acceptDue() {
          isDue = true
          return 0
        },
        async accept(event) {
          const isNew = await store.accept(event)
          if (isDue) await store.acceptDue()
          return isNew
        },
      }
    },
    'claims what is overdue before what was accepted after it',
  ],
  ['keeps every claim', () => ({ async keepOnly() {} }), 'gives up every claim but those that are kept'],
  [
    'hands over nothing that is overdue',
    () => ({ acceptDue: async () => Number.POSITIVE_INFINITY }),
    'turns what is overdue into an event, and what has ended into none',
  ],
  [
    'hands over what has ended',
    (store) => ({
      accept: (event) =>
        store.accept({ ...event, changes: event.changes && { ...event.changes, ends: [] as readonly string[] } }),
    }),
    'turns what is overdue into an event, and what has ended into none',
  ],
  [
    'records no end',
    (store) => ({ settle: async (end) => (end.kind === 'handled' ? true : store.settle(end)) }),
    'remembers a handled event',
  ],
  [
    'makes every retry due at once',
    (store) => ({ settle: (end) => store.settle(end.kind === 'retry' ? { ...end, delayMs: 0 } : end) }),
    'claims a retry when it is due, and not earlier',
  ],
  [
    'counts no attempt',
    (store) => ({ settle: (end) => store.settle(end.kind === 'retry' ? { ...end, counts: 0 } : end) }),
    'claims a retry when it is due, and not earlier',
  ],
  [
    'counts every attempt',
    (store) => ({ settle: (end) => store.settle(end.kind === 'retry' ? { ...end, counts: 1 } : end) }),
    'counts no attempt that a retry leaves out',
  ],
  [
    'forgets why an attempt has failed',
    (store) => ({ settle: (end) => store.settle(end.kind === 'retry' ? { ...end, failed: undefined } : end) }),
    'claims a retry when it is due, and not earlier',
  ],
  [
    'does not tell of the next retry',
    (store) => ({
      async claim(ask) {
        const claimed = await store.claim(ask)
        return claimed && { ...claimed, nextInMs: Number.POSITIVE_INFINITY }
      },
    }),
    'tells when the next retry is due',
  ],
  [
    'counts an attempt for a release',
    (store) => ({
      settle: (end) =>
        store.settle(end.kind === 'release' ? { ...end, kind: 'retry', counts: 1, failed: undefined } : end),
    }),
    'counts no attempt for a release',
  ],
  [
    'records no progress',
    (store) => ({ settle: async (end) => end.kind === 'progress' || store.settle(end) }),
    'adds completed handlers to those that are recorded',
  ],
  [
    'makes no retry due',
    ({ reading }) => ({ reading: { ...reading, makeDue: 'due_at = due_at' } }),
    'makes a retry due on request',
  ],
  [
    'drops dead letters',
    (store) => ({
      settle: (end) => store.settle(end.kind === 'dead' ? { kind: 'handled', job: end.job, handlers: [] } : end),
    }),
    'keeps a dead letter, and claims it again once it is replayed',
  ],
  [
    'forgets the completed handlers of a dead letter',
    (store) => ({ settle: (end) => store.settle(end.kind === 'dead' ? { ...end, completed: [] } : end) }),
    'keeps a dead letter, and claims it again once it is replayed',
  ],
  [
    'hands out any number of suspects',
    (store) => ({ claim: (ask) => store.claim(() => ({ ...ask(), withSuspect: true })) }),
    'hands out one suspect at a time, and healthy events beside it',
  ],
  [
    'hands out any number of suspects that it found',
    (store) => ({ claim: (ask) => store.claim(() => ({ ...ask(), withSuspect: true })) }),
    'hands out one suspect at a time after a process that has ended in order',
  ],
  [
    'counts each crash twice',
    (store) => ({
      async claim(ask) {
        const claimed = await store.claim(ask)
        return claimed && { ...claimed, events: claimed.events.map((each) => ({ ...each, crashes: 2 * each.crashes })) }
      },
    }),
    'counts each crash once, although the next process ends in order',
  ],
  [
    'makes no event healthy',
    (store) => ({
      settle: (end) =>
        store.settle(
          end.kind === 'retry' ? { kind: 'release', job: end.job, delayMs: 0, completed: [], awaits: [] } : end,
        ),
    }),
    'counts a crash for each process that held an event, and none after an attempt has ended',
  ],
  [
    'records no handler in its transaction',
    (store) => ({
      transact: (attempt, scope, run) => store.transact(attempt, { ...scope, handler: `${Math.random()}` }, run),
    }),
    'commits what a handler writes with the record that it has completed, once',
  ],
  [
    'commits what a function has written that throws',
    (store) => ({
      async transact(attempt, scope, run) {
        let failed: { readonly error: unknown } | undefined
        const result = await store.transact(attempt, scope, (client) => {
          try {
            return run(client)
          } catch (error) {
            failed = { error }
            return undefined as never
          }
        })
        if (failed !== undefined) throw failed.error
        return result
      },
    }),
    'commits nothing of a function that throws, nor its record',
  ],
  [
    'commits what a function has written that is out of time',
    (store) => ({
      transact: (attempt, scope, run) =>
        store.transact(attempt, { ...scope, signal: new AbortController().signal }, run),
    }),
    'ends a transaction whose signal is aborted, though its function never settles',
  ],
  [
    'changes rows one step at a time',
    ({ tables }) => ({
      tables: {
        ...tables,
        async change(steps) {
          const rows: number[] = []
          for (const step of steps) rows.push(...(await tables.change([step])))
          return rows
        },
      },
    }),
    'changes rows in one transaction, and tells how many',
  ],
  [
    'counts retries among the waiting events',
    ({ reading }) => ({ reading: { ...reading, counts: () => ({ waiting: 1, running: 0, retrying: 0 }) } }),
    'counts and lists events by their states',
  ],
]

const opened = new Set<EventStore>()

/** Faults that only a database has that several processes share. */
const wrongShared: Fault[] = [
  [
    'records what a process says whose events were taken over',
    (store) => ({ settle: async (end) => (await store.settle(end)) || true }),
    'records nothing of a process whose events were taken over',
  ],
  [
    'records progress late',
    (store) => ({
      async settle(end) {
        if (end.kind === 'progress') await sleep(100)
        return store.settle(end)
      },
    }),
    'records progress before the end that follows it at once',
  ],
  [
    'takes no events over',
    (store) => ({ shared: { ...(store.shared as NonNullable<EventStore['shared']>), async takeOver() {} } }),
    'records nothing of a process whose events were taken over',
  ],
  [
    'keeps its events when it ends',
    () => ({ async end() {} }),
    'gives its events to the next process when it ends in order, and no crash with them',
  ],
  [
    'gives the events of all processes when one ends',
    (store) => {
      opened.add(store)
      return {
        async end() {
          for (const each of opened) await each.keepOnly([])
          await store.end()
        },
      }
    },
    'gives no events of another process when it ends in order',
  ],
  [
    'shares the events of a media item',
    (store) => ({
      accept: ({ accepted, ...event }) => {
        const { event: media, ...rest } = accepted
        return store.accept({
          ...event,
          accepted: { ...rest, event: { ...media, mediaId: media.key } as typeof media },
        })
      },
    }),
    'keeps what another process holds, and the media items of it',
  ],
]

const suiteOver = (subjects: () => Promise<EventStoreSubject>, shared: boolean) => (runner: Runner) =>
  eventStoreContract(subjects, runner, { shared })

describe('the contract suite of event stores', () => {
  test.each(wrongStores)('catches a store that %s', async (_, wrong, caughtBy) => {
    const failures = await failuresOf(suiteOver(wrongly(sqliteStores, wrong), false), caughtBy)
    expect(failures).toEqual({ [caughtBy]: expect.any(String) })
  })

  describe('of a database that processes share', () => {
    const subject = pgliteStores()

    test('catches a store that lets a retry be overtaken in every order', async () => {
      const loose = async () => {
        const right = await subject()
        return { ...right, open: (host: InboxHost) => right.open({ ...host, order: 'loose' }) }
      }
      const caughtBy = 'lets a retry be overtaken, unless the order is strict'
      expect(await failuresOf(suiteOver(loose, true), caughtBy)).toEqual({ [caughtBy]: expect.any(String) })
    })

    test.each(wrongShared)('catches a store that %s', async (_, wrong, caughtBy) => {
      const failures = await failuresOf(suiteOver(wrongly(subject, wrong), true), caughtBy)
      expect(failures).toEqual({ [caughtBy]: expect.any(String) })
    })
  })
})
