import { describe, expect, test, vi } from 'vitest'
import { postgresContract } from '../../contract/postgres.suite.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

/** Settings that change how Postgres reads or writes texts, and how transactions see each other. */
const unusual = {
  datestyle: 'SQL, DMY',
  timezone: 'Asia/Kolkata',
  intervalstyle: 'sql_standard',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  extra_float_digits: '0',
  bytea_output: 'escape',
  transform_null_equals: 'on',
  default_transaction_isolation: 'repeatable read',
}

const schema = `it's "back\\slash\\"`
postgresContract('an inbox in a database with unusual settings, pinned by its connections', {}, unusual, schema)
postgresContract('an inbox in a database with unusual settings, as they are', { listen: false }, unusual, schema)

describe.skipIf(!findPostgres())('a transaction of a handler', () => {
  const postgres = postgresTests()

  test('takes an isolation level as its first statement', async () => {
    const receiver = postgres.receiver()
    const levels: string[] = []
    receiver.on('encoding.finished', async (_, { transaction }) => {
      await transaction(async (client) => {
        await client.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE')
        levels.push((await client.query('SHOW transaction_isolation')).rows[0].transaction_isolation)
      })
    })
    await receiver.ready()
    for (const id of ['one', 'two', 'three']) await accept(receiver, id)
    await vi.waitFor(() => expect(levels).toEqual(['serializable', 'serializable', 'serializable']))
  })

  test('that fails to serialize is no attempt', async () => {
    const receiver = postgres.receiver({}, { retry: { baseMs: 1, attempts: 2 } })
    let runs = 0
    const ended = vi.fn()
    receiver.on('encoding.finished', async (event, { transaction, attempt }) => {
      await transaction(async (client) => {
        if (++runs <= 4) await client.query("DO $$ BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = '40001'; END $$")
      })
      ended(event.mediaId, attempt)
    })
    await receiver.ready()
    await accept(receiver, 'one')
    await vi.waitFor(() => expect(ended).toHaveBeenCalledWith('one', 1))
  })
})
