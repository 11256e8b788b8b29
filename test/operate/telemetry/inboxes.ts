import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import type { InboxDefinition } from '../../../src/inbox/inbox.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { ObjectsInNode } from '../../inbox/durable-object/objects-in-node.ts'
import { loopedInbox } from '../../inbox/queue/looped-inbox.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'

let postgres: PostgresServer
let redis: RedisServer
let made = 0

/** Starts the servers that some inboxes need, for the tests of the file. */
export function startServers(): void {
  beforeAll(async () => {
    if (findPostgres()) postgres = await PostgresServer.start()
    if (findRedis()) redis = await RedisServer.start()
  })
  afterAll(async () => {
    await postgres?.remove()
    await redis?.remove()
  })
}

interface Kind {
  readonly canRun: boolean
  /** `false` if its dead letters stay in a queue that the inbox does not reach. */
  readonly replays?: boolean
  make(): InboxDefinition | Promise<InboxDefinition>
  /** Makes a storage, and returns what opens it, as one process after another does. */
  readonly storage?: () => Promise<() => InboxDefinition>
}

const storages = {
  async sqlite() {
    const path = await freshPath()
    return () => sqliteInbox({ path })
  },
  async postgres() {
    const schema = `traced ${++made}`
    return () => postgresInbox({ connection: postgres.url, schema })
  },
  async bullmq() {
    const queue = `traced ${++made}`
    return () => bullmqInbox({ connection: redis.url, queue })
  },
}

/** Every inbox, and how a test makes an empty one. */
export const inboxes: Readonly<Record<string, Kind>> = {
  memory: { canRun: true, make: () => memoryInbox() },
  sqlite: { canRun: true, make: async () => (await storages.sqlite())(), storage: storages.sqlite },
  postgres: {
    canRun: Boolean(findPostgres()),
    make: async () => (await storages.postgres())(),
    storage: storages.postgres,
  },
  bullmq: { canRun: Boolean(findRedis()), make: async () => (await storages.bullmq())(), storage: storages.bullmq },
  queue: {
    canRun: true,
    replays: false,
    make() {
      const { inbox, close } = loopedInbox()
      onTestFinished(close)
      return inbox
    },
  },
  'durable object': {
    canRun: true,
    make() {
      const objects = new ObjectsInNode()
      return defineInbox({ name: 'durableObjectInbox', open: (host) => objects.open(host) })
    },
  },
}
