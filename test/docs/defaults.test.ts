import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { ofBullmqInbox, ofPostgresInbox, ofSqliteInbox } from './defaults/durable.ts'
import { ofDurableObjectInbox, ofDurableObjectStore, ofInboxObject } from './defaults/durable-objects.ts'
import type { Observations } from './defaults/elapsed.ts'
import { ofLruStore, ofMemoryInbox, ofRedisStore } from './defaults/memory.ts'
import { ofClient, ofEmulator, ofHmacSignature, ofTimestamp, ofTimestampedSignature } from './defaults/others.ts'
import { ofQueueInbox } from './defaults/queue.ts'
import { ofClose, ofReceiver } from './defaults/receiver.ts'
import { defaultTables } from './defaults/tables.ts'

const hasPostgres = findPostgres()
const hasRedis = findRedis()
let postgres: PostgresServer
let redis: RedisServer
beforeAll(async () => {
  if (hasPostgres) postgres = await PostgresServer.start()
  if (hasRedis) redis = await RedisServer.start()
})
afterAll(async () => {
  await postgres?.remove()
  await redis?.remove()
})

const observations: Readonly<Record<string, Observations>> = {
  createReceiver: ofReceiver,
  'receiver.close': ofClose,
  memoryInbox: ofMemoryInbox,
  lruStore: ofLruStore,
  sqliteInbox: ofSqliteInbox,
  postgresInbox: ofPostgresInbox(() => postgres),
  bullmqInbox: ofBullmqInbox(() => redis),
  queueInbox: ofQueueInbox,
  redisStore: ofRedisStore,
  durableObjectInbox: ofDurableObjectInbox,
  inboxObject: ofInboxObject,
  durableObjectStore: ofDurableObjectStore,
  createClient: ofClient,
  createEmulator: ofEmulator,
  hmacSignature: ofHmacSignature,
  'hmacSignature.timestamp': ofTimestamp,
  timestampedSignature: ofTimestampedSignature,
}

const servers: Readonly<Record<string, boolean>> = { postgresInbox: hasPostgres, bullmqInbox: hasRedis }

test('The options of the tables are those that are observed', () => {
  const observed = Object.entries(observations).map(([of, options]) => [of, Object.keys(options).toSorted()])
  const documented = defaultTables.map(({ of, rows }) => [of, rows.flatMap(({ options }) => options).toSorted()])
  expect(documented.toSorted()).toEqual(observed.toSorted())
})

describe.each(defaultTables)('The default of $of in the docs', ({ of, rows }) => {
  const documented = rows.flatMap(({ options, value }) => options.map((option) => [option, value] as const))
  test.skipIf(servers[of] === false).each(documented)('%s is %j', async (option, value) => {
    expect(await observations[of]?.[option]?.()).toEqual(value)
  })
})
