import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { CleanUp } from '../../../src/inbox/postgres/clean-up.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

const dayMs = 86_400_000
const old = "now() - interval '2 days'"
const future = "now() + interval '30 days'"

// The tables are filled by hand. Keys have the ids of their events.
describe.skipIf(!findPostgres())('a clean-up of Postgres', () => {
  const postgres = postgresTests()
  // An inbox cleans up when it is opened, and then every minute.
  beforeEach(async () => {
    const receiver = postgres.receiver({ handles: false })
    await receiver.ready()
    await receiver.close()
  })

  const cleanUp = () => new CleanUp(postgres.database(), dayMs)
  const remember = (id: number, acceptedAt: string, count = 1) =>
    postgres.query(`INSERT INTO $schema.key (hash, id, accepted_at)
      SELECT gen_random_uuid(), ${id} + n, ${acceptedAt} FROM generate_series(0, ${count - 1}) AS n`)
  const record = (id: number, endedAt: string) =>
    postgres.query(`INSERT INTO $schema.handled (id, media, record)
      SELECT ${id}, 1, json_build_array('', '', '', extract(epoch FROM ${endedAt}) * 1000, 0)`)
  const endOf = (subject: number, acceptedAt: string) =>
    postgres.query(`INSERT INTO $schema.expectation_end (subject, ended_at, accepted_at)
      SELECT lpad('${subject}', 32, '0')::uuid, 0, ${acceptedAt}`)
  const delay = (id: number, delayedAt: string) =>
    postgres.query(`INSERT INTO $schema.event (id, media, event, received_at, due_at, delayed_at)
      SELECT ${id}, 1, '{}', now(), ${delayedAt} + interval '1 h', ${delayedAt}`)
  const count = async (table: string, where = 'true') =>
    (await postgres.query(`SELECT FROM $schema.${table} WHERE ${where}`)).length

  test('keeps the keys and the records of the time that is remembered, and no older ones', async () => {
    for (const [id, time] of [old, 'now()'].entries()) {
      await remember(id + 1, time)
      await record(id + 1, time)
      await endOf(id + 1, time)
    }
    expect(await cleanUp().step()).toBe(60_000)
    expect(await postgres.query('SELECT id::int FROM $schema.key')).toEqual([{ id: 2 }])
    expect(await postgres.query('SELECT id::int FROM $schema.handled')).toEqual([{ id: 2 }])
    expect(await postgres.query('SELECT right(subject::text, 1) AS id FROM $schema.expectation_end')).toEqual([
      { id: '2' },
    ])
  })

  test('keeps the records that ended in that time, however old their keys are', async () => {
    await remember(1, old)
    await record(1, 'now()')
    await cleanUp().step()
    expect([await count('key'), await count('handled')]).toEqual([1, 1])
  })

  test('forgets the removal of handlers once it is old', async () => {
    await postgres.query(`INSERT INTO $schema.removed_handler VALUES ('"old"', ${old}), ('"new"', now())`)
    await cleanUp().step()
    expect(await postgres.query('SELECT name FROM $schema.removed_handler')).toEqual([{ name: '"new"' }])
  })

  test('forgets keys that were accepted together, however many', async () => {
    await remember(1, "'2020-01-01'", 2_001)
    const step = cleanUp()
    await step.step()
    expect(await count('key')).toBe(0)
  })

  test('passes the rows that other sessions have locked', async () => {
    for (const id of [1, 2]) {
      await remember(id, old)
      await record(id + 2, old)
      await remember(id + 4, 'now()')
      await endOf(id, old)
      await delay(id + 6, future)
    }
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    const { schema } = postgres
    await client.query(`BEGIN;
      SELECT FROM ${schema}.key WHERE id = 1 FOR UPDATE;
      SELECT FROM ${schema}.handled WHERE id = 3 FOR UPDATE;
      SELECT FROM ${schema}.expectation_end WHERE right(subject::text, 1) = '1' FOR UPDATE;
      SELECT FROM ${schema}.event WHERE id = 7 FOR UPDATE`)
    await cleanUp().step()
    expect(await count('key', 'id < 3')).toBe(1)
    expect(await count('handled')).toBe(1)
    expect(await count('expectation_end')).toBe(1)
    expect(await count('event', `due_at > now() + interval '1 day'`)).toBe(1)
  })
})
