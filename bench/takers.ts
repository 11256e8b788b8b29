import { setTimeout as pause } from 'node:timers/promises'
import Libsql from 'libsql'
import type { SqliteDatabase } from '../src/inbox/sqlite.ts'
import { type SignedDelivery, signedDelivery, toDelivery } from './deliveries.ts'

/** Takes one delivery as an adapter has it: the bytes, and the headers of node:http. */
export type Take = (delivery: SignedDelivery) => unknown

/**
 * The contenders that take deliveries in process. Each imports only its own modules, so that its process loads nothing
 * else.
 */
export interface Setup {
  readonly taker: keyof typeof takers
  /** The number of keys that the store remembers at the start, which is also its size. */
  readonly keys?: number
  /** The number of handlers. */
  readonly handlers?: number
  /** The number of media items with an event in progress at all times. */
  readonly media?: number
}

const otherKeys = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const mediaId = index.toString(16).padStart(36, '0')
    return ['encoding.finished', mediaId, '2026-03-01T12:00:00Z', '360p,720p', 'done'].join('|')
  })

export const takers = {
  async byHand(): Promise<Take> {
    const { run, take } = await import('./pipeline.ts')
    return ({ body, headers }) => run(take(body, headers['x-signature']))
  },

  /** A transaction for each event, with the settings of the SQLite inbox. */
  async byHandWithSqlite(): Promise<Take> {
    const { keyOf, run, take } = await import('./pipeline.ts')
    const { temporaryFile } = await import('./ours.ts')
    const database: SqliteDatabase = new Libsql(temporaryFile())
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
    database.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000')
    database.exec('CREATE TABLE event (key TEXT PRIMARY KEY, event TEXT)')
    const insert = database.prepare('INSERT OR IGNORE INTO event VALUES (?, ?)')
    return ({ body, headers }) => {
      const taken = take(body, headers['x-signature'])
      if (typeof taken === 'object') insert.run(keyOf(taken), JSON.stringify(taken))
      run(taken)
    }
  },

  async ours(): Promise<Take> {
    const { receiver } = await import('./ours.ts')
    const ours = receiver()
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  /** With a logger that has every level on, and writes nothing. */
  async oursWithLogger(): Promise<Take> {
    const { receiver } = await import('./ours.ts')
    const write = () => {}
    const ours = receiver({ logger: { debug: write, info: write, warn: write, error: write } })
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  async oursWithSqlite(): Promise<Take> {
    const { durableReceiver } = await import('./ours.ts')
    const ours = durableReceiver()
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  async byHandWithKeys({ keys = 1 }: Partial<Setup>): Promise<Take> {
    const { remember } = await import('./pipeline.ts')
    remember(otherKeys(keys))
    return takers.byHand()
  },

  async oursWithKeys({ keys = 1 }: Partial<Setup>): Promise<Take> {
    const { lruStore, memoryInbox, receiver } = await import('./ours.ts')
    const store = lruStore({ max: keys })
    for (const key of otherKeys(keys)) {
      store.claim(key, 'earlier', 5_000)
      store.complete(key, 'earlier')
    }
    const ours = receiver({ inbox: memoryInbox({ store }) })
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  /** All handlers but one are for another type. */
  async oursWithHandlers({ handlers = 1 }: Partial<Setup>): Promise<Take> {
    const { receiver } = await import('./ours.ts')
    const ours = receiver()
    for (let index = 1; index < handlers; index++) ours.on('encoding.started', async () => {}, { name: `${index}` })
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  /** Every handler runs for every event. */
  async oursWithRuns({ handlers = 1 }: Partial<Setup>): Promise<Take> {
    const { receiver } = await import('./ours.ts')
    const ours = receiver()
    for (let index = 1; index < handlers; index++) ours.on('encoding.finished', async () => {}, { name: `${index}` })
    return (delivery) => ours.receive(toDelivery(delivery))
  },

  async oursWithMedia({ media = 1 }: Partial<Setup>): Promise<Take> {
    const { memoryInbox, receiver } = await import('./ours.ts')
    const limit = 2 * media + 100_000
    const inbox = memoryInbox({ concurrency: limit, maxWaiting: limit })
    const ours = receiver({ inbox, handlerTimeoutMs: 3_600_000 })
    let started = 0
    ours.on('encoding.started', () => {
      started++
      return new Promise(() => {})
    })
    for (let index = 0; index < media; index++) {
      await ours.receive(toDelivery(signedDelivery(8_000_000 + index, 'x-signature', 'encoding.started')))
    }
    while (started < media) await pause(10)
    return (delivery) => ours.receive(toDelivery(delivery))
  },
}
