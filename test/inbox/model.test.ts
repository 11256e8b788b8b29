import { describe, expect, onTestFinished, test } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { findPostgres } from '../postgres/find-postgres.ts'
import { PostgresServer } from '../postgres/postgres-server.ts'
import { findRedis } from '../redis/find-redis.ts'
import { RedisServer } from '../redis/redis-server.ts'
import { checkAgainstModel } from './model.ts'
import { temporaryFile } from './sqlite/fixture.ts'

const timeout = 60_000

describe('an inbox behaves like its model, whatever is done with it', () => {
  test('memoryInbox', () => checkAgainstModel(() => ({ inbox: memoryInbox() }), 100), timeout)

  test(
    'sqliteInbox',
    () =>
      checkAgainstModel(async () => {
        const { path, remove } = await temporaryFile()
        return { inbox: sqliteInbox({ path }), close: remove }
      }, 50),
    timeout,
  )

  test.skipIf(!findPostgres())(
    'postgresInbox',
    async () => {
      const server = await PostgresServer.start()
      onTestFinished(() => server.remove())
      let subjects = 0
      const subject = () => ({ inbox: postgresInbox({ connection: server.url, schema: `subject ${++subjects}` }) })
      await checkAgainstModel(subject, 25)
    },
    timeout,
  )

  test.skipIf(!findRedis())(
    'bullmqInbox',
    async () => {
      const server = await RedisServer.start()
      onTestFinished(() => server.remove())
      let subjects = 0
      const subject = () => ({
        inbox: bullmqInbox({ connection: server.url, queue: `subject ${++subjects}` }),
        ordered: false,
      })
      await checkAgainstModel(subject, 25)
    },
    timeout,
  )

  test(
    'an inbox that behaves otherwise is found out',
    async () => {
      const unordered = () => ({ inbox: memoryInbox(), ordered: false })
      await expect(checkAgainstModel(unordered, 100, { endOnFailure: true })).rejects.toMatchObject({
        cause: { message: 'no attempt started within 3000 ms' },
      })
    },
    timeout,
  )
})
