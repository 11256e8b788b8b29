import { describe, expect, onTestFinished, test } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { checkAgainstModel } from './model.ts'
import { temporaryFile } from './sqlite/sqlite-tests.ts'

describe('an inbox behaves like its model, in any sequence of commands', () => {
  test('memoryInbox', () => checkAgainstModel(() => ({ inbox: memoryInbox() }), 100))

  test('sqliteInbox', () =>
    checkAgainstModel(async () => {
      const { path, remove } = await temporaryFile()
      return { inbox: sqliteInbox({ path }), close: remove }
    }, 50))

  test.skipIf(!findPostgres())('postgresInbox', async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.remove())
    let subjects = 0
    const subject = () => ({ inbox: postgresInbox({ connection: server.url, schema: `subject ${++subjects}` }) })
    await checkAgainstModel(subject, 25)
  })

  test.skipIf(!findRedis())('bullmqInbox', async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.remove())
    let subjects = 0
    const subject = () => ({
      inbox: bullmqInbox({ connection: server.url, queue: `subject ${++subjects}` }),
      ordered: false,
    })
    await checkAgainstModel(subject, 25)
  })

  test('an inbox that behaves otherwise is found out', async () => {
    const unordered = () => ({ inbox: memoryInbox(), ordered: false })
    await expect(checkAgainstModel(unordered, 100, { endOnFailure: true })).rejects.toMatchObject({
      cause: { message: 'no attempt started within 30000 ms' },
    })
  })
})
