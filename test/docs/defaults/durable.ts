import { Redis } from 'ioredis'
import Libsql from 'libsql'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { temporaryFile } from '../../inbox/sqlite/sqlite-tests.ts'
import { freePort } from '../../support/free-port.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import type { PostgresServer } from '../../support/postgres/postgres-server.ts'
import type { RedisServer } from '../../support/redis/redis-server.ts'
import { untyped } from '../../support/untyped.ts'
import { elapsed, type Observations, required } from './elapsed.ts'
import { concurrencyOf, maxDeadLettersOf, maxWaitingOf, withOpen } from './inboxes.ts'

const hour = 3_600_000
const minute = 60_000

/** The ages of keys, in ms: a minute more and a minute less than each number of hours. */
export const ages = Array.from({ length: 100 }, (_, hours) => [
  hours * hour + minute,
  hours * hour + 59 * minute,
]).flat()

/** Inserts an event that has ended, into a file or an object. */
export const endedEvent = 'INSERT INTO inbox_event (hash, media, received_at, ended_at) VALUES (?1, 0, ?2, ?2)'

/** The time between the oldest key that was kept and the next one. */
export const ttlFrom = (kept: number): number => ((ages[kept - 1] as number) + (ages[kept] as number)) / 2

/** Rounds the rest of a time to the given time, which began at most 2 s ago. */
const given = (leftMs: number): number => Math.ceil(leftMs / 2_000) * 2_000

/** Runs with the path of a file, and removes it. */
async function withFile<Result>(run: (path: string) => Promise<Result>): Promise<Result> {
  const { path, remove } = await temporaryFile()
  return run(path).finally(remove)
}

/** Observes how old a key gets, in a file with keys of every age. */
const sqliteTtl = () =>
  withFile(async (path) => {
    await withOpen(sqliteInbox({ path }), async () => {})
    const file = new Libsql(path)
    const insert = file.prepare(endedEvent)
    for (const age of ages) insert.run(`${age}`, Date.now() - age)
    const count = () => (file.prepare('SELECT count(*) AS count FROM inbox_event').get() as { count: number }).count
    const kept = await withOpen(sqliteInbox({ path }), async () => {
      await until(async () => count() < ages.length)
      return count()
    })
    file.close()
    return ttlFrom(kept)
  })

export const ofSqliteInbox: Observations = {
  path: () => required(() => sqliteInbox(untyped({}))) === 'required' && 'one is required',
  database: () => required(() => sqliteInbox(untyped({}))) === 'required' && 'one is required',
  concurrency: () => withFile((path) => concurrencyOf(sqliteInbox({ path }))),
  maxWaiting: () => withFile((path) => maxWaitingOf(sqliteInbox({ path }))),
  maxDeadLetters: () => withFile((path) => maxDeadLettersOf(sqliteInbox({ path }))),
  ttlMs: sqliteTtl,
}

/** Observes the time after which an event is not accepted by an inbox without a server. */
async function timeoutOf(inboxOn: (port: number) => Parameters<typeof openInbox>[0]) {
  const { inbox } = openInbox(inboxOn(await freePort()))
  const waited = await elapsed(async () => inbox.accept(eventOf('one')))
  await inbox.close({ timeoutMs: 0 })
  return waited
}

export const ofPostgresInbox = (server: () => PostgresServer): Observations => {
  const inbox = (schema = 'media_webhooks') => postgresInbox({ connection: server().url, schema })
  const withoutSchema = () => postgresInbox({ connection: server().url })
  return {
    pool: () => required(() => postgresInbox(untyped({}))) === 'required' && 'one is required',
    connection: () => required(() => postgresInbox(untyped({}))) === 'required' && 'one is required',
    schema: () =>
      withOpen(withoutSchema(), async (opened) => {
        await opened.inbox.ready?.()
        const [row] = await server().query("SELECT schemaname FROM pg_tables WHERE tablename = 'lane'")
        return row?.['schemaname']
      }),
    handles: () =>
      withOpen(withoutSchema(), async ({ inbox, calls }) => {
        await inbox.accept(eventOf('one'))
        return (await calls.next()).event.key === 'one'
      }),
    concurrency: () => concurrencyOf(inbox('concurrency')),
    leaseMs: () =>
      withOpen(inbox('lease'), async (opened) => {
        await opened.inbox.ready?.()
        const left = 'SELECT EXTRACT(epoch FROM expires_at - clock_timestamp()) * 1000 AS ms FROM lease.process'
        await until(async () => (await server().query(left)).length === 1)
        const [row] = await server().query(left)
        return given(Number(row?.['ms']))
      }),
    async ttlMs() {
      await withOpen(inbox('ttl'), async (opened) => opened.inbox.ready?.())
      const values = ages.map((age, id) => `(md5('${id}')::uuid, 0, now(), now() - ${age} * interval '1 ms')`)
      await server().query(`INSERT INTO ttl.event (hash, media, received_at, ended_at) VALUES ${values}`)
      const count = async () => (await server().query('SELECT FROM ttl.event')).length
      return withOpen(inbox('ttl'), async () => {
        await until(async () => (await count()) < ages.length)
        return ttlFrom(await count())
      })
    },
    timeoutMs: () => timeoutOf((port) => postgresInbox({ connection: `postgres://nobody@127.0.0.1:${port}/none` })),
    listen: () =>
      withOpen(inbox('listening'), async () => {
        // After it has begun to listen, the connection looks for what came before.
        const listening = "SELECT FROM pg_stat_activity WHERE query ~ '^(LISTEN|SELECT max).*listening'"
        await until(async () => (await server().query(listening)).length > 0)
        return true
      }),
  }
}

export const ofBullmqInbox = (server: () => RedisServer): Observations => {
  const inbox = (queue: string) => bullmqInbox({ connection: server().url, queue })
  /** Maximum time that is left to a key of Redis. */
  async function longestLeft(pattern: string) {
    const redis = new Redis(server().port)
    const left = async () => Promise.all((await redis.keys(pattern)).map((key) => redis.pttl(key)))
    await until(async () => Math.max(...(await left())) > 0)
    const longest = Math.max(...(await left()))
    redis.disconnect()
    return given(longest)
  }
  return {
    connection: () => required(() => bullmqInbox(untyped({}))),
    queue: () =>
      withOpen(bullmqInbox({ connection: server().url }), async (opened) => {
        await opened.inbox.accept(eventOf('one'))
        const redis = new Redis(server().port)
        const [key] = await redis.keys('bull:*:id')
        redis.disconnect()
        return key?.split(':')[1]
      }),
    handles: () =>
      withOpen(inbox('handles'), async ({ inbox, calls }) => {
        await inbox.accept(eventOf('one'))
        return (await calls.next()).event.key === 'one'
      }),
    concurrency: () => concurrencyOf(inbox('concurrency')),
    leaseMs: () =>
      withOpen(inbox('lease'), async (opened) => {
        await opened.inbox.accept(eventOf('one'))
        return longestLeft('bull:lease:*:lock')
      }),
    ttlMs: () =>
      withOpen(inbox('ttl'), async (opened) => {
        opened.calls.finishAll()
        await opened.inbox.accept(eventOf('one'))
        await until(async () => {
          const { waiting, running } = await opened.inbox.stats()
          return waiting + running === 0
        })
        return longestLeft('webhooks:ttl:key:*')
      }),
    timeoutMs: () => timeoutOf((port) => bullmqInbox({ connection: `redis://127.0.0.1:${port}` })),
  }
}
