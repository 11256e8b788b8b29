import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { type Deployment, provePlatform } from '../platforms/platform.suite.ts'
import { serverDeployment } from '../platforms/server-deployment.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

const runs = { node: [], bun: ['run'], deno: ['run', '--allow-all'] }

type Runtime = keyof typeof runs

type Inbox = 'memory' | 'sqlite' | 'postgres' | 'bullmq'

let postgres: PostgresServer | undefined
let redis: RedisServer | undefined
beforeAll(async () => {
  await cp(join(here, 'inbox-server.js'), join(inject('userFolder'), 'inbox-server.js'))
  if (findPostgres()) postgres = await PostgresServer.start()
  if (findRedis()) redis = await RedisServer.start()
})
afterAll(async () => {
  await postgres?.remove()
  await redis?.remove()
})

/** Deploys the server of `inbox-server.js` on a runtime. */
const on = (runtime: Runtime, inbox: Inbox) => (): Promise<Deployment> => {
  const storage = { memory: '', sqlite: '', postgres: postgres?.url, bullmq: `${redis?.port}` }[inbox] ?? ''
  return serverDeployment({
    command: runtime === 'node' ? process.execPath : (findRuntime(runtime) as string),
    args: [...runs[runtime], 'inbox-server.js'],
    cwd: inject('userFolder'),
    env: { INBOX: inbox, STORAGE: storage, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
    path: '/',
  })
}

describe('on Node', () => {
  provePlatform('node memory', on('node', 'memory'))
  provePlatform('node sqlite', on('node', 'sqlite'))
  describe.skipIf(!findPostgres())('Postgres', () => provePlatform('node postgres', on('node', 'postgres')))
  describe.skipIf(!findRedis())('Redis', () => provePlatform('node bullmq', on('node', 'bullmq')))
})

describe.skipIf(findRuntime('bun') === undefined)('on Bun', () => {
  provePlatform('bun memory', on('bun', 'memory'))
  provePlatform('bun sqlite', on('bun', 'sqlite'))
  describe.skipIf(!findPostgres())('Postgres', () => provePlatform('bun postgres', on('bun', 'postgres')))
  describe.skipIf(!findRedis())('Redis', () => provePlatform('bun bullmq', on('bun', 'bullmq')))
})

describe.skipIf(findRuntime('deno') === undefined)('on Deno', () => {
  provePlatform('deno memory', on('deno', 'memory'))
  provePlatform('deno sqlite', on('deno', 'sqlite'))
  describe.skipIf(!findPostgres())('Postgres', () => provePlatform('deno postgres', on('deno', 'postgres')))
  describe.skipIf(!findRedis())('Redis', () => provePlatform('deno bullmq', on('deno', 'bullmq')))
})
