import { rmSync } from 'node:fs'
import type { PoolClient } from 'pg'
import { lruStore } from '../../src/idempotency/lru.ts'
import { redisStore } from '../../src/idempotency/redis.ts'
import type { InboxDefinition } from '../../src/inbox/inbox.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { openInboxes } from '../../src/inbox/sqlite/file.ts'
import { openInboxFile, type SqliteDatabase, sqliteInbox } from '../../src/inbox/sqlite.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import { type Plan, ttlMs } from './plan.ts'
import { PostgresLink, type PostgresServer } from './postgres.ts'
import { HttpRedisLink, RedisLink, type RedisServer } from './redis.ts'
import { UnreliableDatabase } from './sqlite.ts'
import type { Process } from './world.ts'

/** The storage that outlives the processes: a Redis, a file, or nothing. */
export interface Storage {
  /** Makes the inbox of a process. Throws when the storage fails. */
  inboxFor(process: Process): InboxDefinition
  /** Says what is left over, when every process has closed. */
  leftOver(): readonly string[] | Promise<readonly string[]>
  /** Writes down that a handler has handled an event, as part of its transaction. Absent if it has no transactions. */
  readonly writeDown?: (client: never, what: string) => unknown
  /** Counts what was written down. */
  readonly written?: () => ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  remove(): void
}

/** Draws the fault of one operation of a process, and notes it. */
export type DrawFault = <Fault>(process: Process, faults: readonly Fault[]) => Fault | undefined

export const memoryStorage = ({ concurrency, maxWaiting, leaseMs }: Plan): Storage => ({
  inboxFor: () => memoryInbox({ concurrency, maxWaiting, leaseMs, store: lruStore({ ttlMs }) }),
  leftOver: () => [],
  remove() {},
})

const redisFaults = ['lost', 'lost', 'answer-lost', 'answer-lost', 'twice', 'twice', 'hung'] as const

export function redisStorage(plan: Plan, server: RedisServer, draw: DrawFault): Storage {
  const { concurrency, maxWaiting, leaseMs, networkLatencyMs: latencyMs } = plan
  return {
    inboxFor(process) {
      // On Workers no connection outlives a request.
      const Link = requestsEndWork ? HttpRedisLink : RedisLink
      const client = new Link({ world: process.world, server, latencyMs, fault: () => draw(process, redisFaults) })
      const store = redisStore({ client, ttlMs, timeoutMs: Math.min(2_000, leaseMs) })
      return memoryInbox({ concurrency, maxWaiting, leaseMs, store })
    },
    leftOver: () => [...server].filter(([, value]) => !value.startsWith('done:')).map(([key]) => `a claim of ${key}`),
    remove() {},
  }
}

const sqliteFaults = ['busy', 'busy', 'failed', 'answer-lost', 'killed-before', 'killed-after'] as const

export function sqliteStorage({ concurrency, maxWaiting }: Plan, path: string, draw: DrawFault): Storage {
  const files = ['', '-wal', '-shm', '-lock', '-lock-journal', '-journal']
  const remove = () => {
    for (const suffix of files) rmSync(path + suffix, { force: true })
  }
  remove()
  return {
    inboxFor(process) {
      const kill = () => process.end()
      const database = new UnreliableDatabase(path, { fault: () => draw(process, sqliteFaults), kill })
      process.atEnd(() => {
        database.cutOff()
        // All simulated processes share one registry of open files; a killed one must not hand its file over.
        openInboxes().delete(path)
      })
      database.exec('CREATE TABLE IF NOT EXISTS written (what TEXT)')
      return sqliteInbox({ database, concurrency, maxWaiting, ttlMs })
    },
    leftOver() {
      const file = openInboxFile(path)
      try {
        return Object.entries(file.stats()).flatMap(([what, count]) =>
          what === 'waiting' || what === 'retrying' ? (count > 0 ? [`${count} events ${what} in the file`] : []) : [],
        )
      } finally {
        file.close()
      }
    },
    writeDown: (database: SqliteDatabase, what) => database.prepare('INSERT INTO written VALUES (?)').run(what),
    written: () => readWritten(path),
    remove,
  }
}

const postgresFaults = ['lost', 'answer-lost', 'hung'] as const

export function postgresStorage(plan: Plan, server: PostgresServer, draw: DrawFault): Storage {
  const { concurrency, leaseMs, networkLatencyMs: latencyMs } = plan
  return {
    inboxFor(process) {
      const fault = () => draw(process, postgresFaults)
      const stream = () => new PostgresLink({ world: process.world, server, fault, latencyMs, idleMs: leaseMs })
      return postgresInbox({ connection: { stream }, listen: false, concurrency, leaseMs, ttlMs })
    },
    async leftOver() {
      const rows = await server.sql<{ id: string }>(
        'SELECT id FROM media_webhooks.event WHERE ended_at IS NULL AND died_at IS NULL',
      )
      return rows.length > 0 ? [`${rows.length} events in the database`] : []
    },
    writeDown: (client: PoolClient, what) => client.query('INSERT INTO written VALUES ($1)', [what]),
    async written() {
      const rows = await server.sql<Written>('SELECT what, count(*)::int AS times FROM written GROUP BY what')
      return new Map(rows.map(({ what, times }) => [what, times]))
    },
    remove() {},
  }
}

interface Written {
  readonly what: string
  readonly times: number
}

function readWritten(path: string): ReadonlyMap<string, number> {
  const database = new UnreliableDatabase(path, { fault: () => undefined, kill() {} })
  const rows = database.prepare('SELECT what, count(*) AS times FROM written GROUP BY what').all()
  database.close()
  return new Map((rows as Written[]).map(({ what, times }) => [what, times]))
}
