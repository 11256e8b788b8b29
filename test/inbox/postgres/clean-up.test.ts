import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

const old = "now() - interval '2 days'"

// An inbox cleans up when it is opened, and then every minute. It remembers keys for a day.
describe.skipIf(!findPostgres())('a clean-up of Postgres', () => {
  const postgres = postgresTests()

  async function cleanUp(inbox = {}) {
    const receiver = postgres.receiver({ handles: false, ...inbox }).onAny(() => {})
    await receiver.ready()
    return receiver
  }

  /** Makes the tables, after their first clean-up. */
  async function makeTables() {
    await (await cleanUp()).close()
  }

  /** Writes events as if they had been accepted two days ago. */
  const writeOld = (count: number, columns: Readonly<Record<string, string>>) =>
    postgres.query(`
      WITH event AS (
        INSERT INTO $schema.event (hash, media, received_at, ${Object.keys(columns)})
        SELECT gen_random_uuid(), n, ${old}, ${Object.values(columns)} FROM generate_series(1, ${count}) AS n RETURNING media
      ) INSERT INTO $schema.lane (media) SELECT media FROM event ON CONFLICT DO NOTHING`)
  const count = async (table: string, where = 'true') =>
    (await postgres.query(`SELECT FROM $schema.${table} WHERE ${where}`)).length

  test('forgets keys when their time is up, except those of unfinished events and of dead letters', async () => {
    const receiver = postgres.receiver({ ttlMs: 60_000 }, { retry: { attempts: 1 } })
    receiver.onAny(({ mediaId }) => {
      if (mediaId === 'running') return new Promise(() => {})
      if (mediaId === 'dead') throw new Error('no')
    })
    await receiver.ready()
    for (const mediaId of ['handled', 'running', 'dead']) await accept(receiver, mediaId)
    await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ running: 1, deadLetters: 1 }))
    await sleep(400)
    expect(await count('event')).toBe(3)
    const other = await cleanUp({ ttlMs: 300 })
    await vi.waitFor(async () => expect(await count('event')).toBe(2))
    expect(await accept(other, 'handled')).toBe('accepted')
    expect(await accept(other, 'running')).toBe('duplicate')
    expect(await accept(other, 'dead')).toBe('duplicate')
    await other.inbox.deadLetters.discard((await other.inbox.deadLetters.list())[0]?.key as string)
    expect(await accept(other, 'dead')).toBe('duplicate')
    await other.close()
    await sleep(400)
    await cleanUp({ ttlMs: 300 })
    await vi.waitFor(async () => expect(await count('event')).toBe(1))
  })

  test('keeps what ended in the time that is remembered, however old it is, and what removed handlers are named', async () => {
    await makeTables()
    await writeOld(3, { ended_at: old })
    await writeOld(2, { ended_at: 'now()' })
    await postgres.query(`INSERT INTO $schema.removed_handler VALUES ('"old"', ${old}), ('"new"', now())`)
    await cleanUp()
    await vi.waitFor(async () => expect(await count('event')).toBe(2))
    expect(await postgres.query('SELECT name FROM $schema.removed_handler')).toEqual([{ name: '"new"' }])
    expect(await postgres.query('SELECT media::int FROM $schema.lane ORDER BY media')).toEqual([
      { media: 1 },
      { media: 2 },
    ])
  })

  test('comes in small pages to what is behind any number of events that stay', async () => {
    await makeTables()
    await writeOld(6_000, { event: "'{}'", died_at: old })
    await writeOld(6_000, { event: "'{}'" })
    await writeOld(3_000, { ended_at: old })
    await postgres.query(`
      CREATE TABLE $schema.deleted (rows int);
      CREATE FUNCTION $schema.count() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO $schema.deleted SELECT count(*) FROM gone; RETURN NULL; END';
      CREATE TRIGGER count AFTER DELETE ON $schema.event REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION $schema.count()`)
    await cleanUp()
    await vi.waitFor(async () => expect(await count('event')).toBe(12_000), 20_000)
    const [page] = await postgres.query<{ most: number }>('SELECT max(rows) AS most FROM $schema.deleted')
    expect(page?.most).toBeLessThanOrEqual(1_000)
  })

  test('passes what other sessions have locked', async () => {
    await makeTables()
    await writeOld(2, { ended_at: old })
    await postgres.query(`INSERT INTO $schema.expectation_end (subject, ended_at, accepted_at)
      SELECT lpad(n::text, 32, '0')::uuid, 0, ${old} FROM generate_series(1, 2) AS n`)
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    await client.query(`BEGIN; SELECT FROM ${postgres.schema}.event WHERE media = 1 FOR UPDATE;
      SELECT FROM ${postgres.schema}.lane WHERE media = 2 FOR UPDATE;
      SELECT FROM ${postgres.schema}.expectation_end ORDER BY subject LIMIT 1 FOR UPDATE`)
    await cleanUp()
    await vi.waitFor(async () => expect([await count('event'), await count('expectation_end')]).toEqual([1, 1]))
    expect(await count('lane')).toBe(2)
  })
})
