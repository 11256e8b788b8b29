import { describe, expect, test } from 'vitest'
import { until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { owedHandlers } from '../owed-handlers.suite.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const { receiver, query } = postgresTests()
  owedHandlers(async (inbox, options) => receiver(inbox, options))

  test('an event that is left to another process stays one that may have made a process crash', async () => {
    const front = receiver({ handles: false }).on('encoding.finished', () => {}, { name: 'b' })
    await front.ready()
    await accept(front, 'm')
    await query('UPDATE $schema.event SET crashes = 3')
    const other = receiver().on('encoding.finished', () => {}, { name: 'a' })
    await other.ready()
    await until(async () => (await other.inbox.stats()).retrying === 1)
    expect(await query('SELECT crashes, attempts FROM $schema.event')).toEqual([{ crashes: 3, attempts: 0 }])
  })
})
