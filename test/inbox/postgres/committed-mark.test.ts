import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { CommittedMark } from '../../../src/inbox/postgres/claim/committed-mark.ts'
import { LowMarkTracker } from '../../../src/inbox/postgres/claim/low-marks.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe('the id up to which no event is still being committed', () => {
  const after = (...claims: [lastId: number, oldest: number, next: number][]) => {
    const mark = new CommittedMark()
    for (const [lastId, oldest, next] of claims) mark.saw({ lastId: `${lastId}`, oldest: `${oldest}`, next: `${next}` })
    return mark.id
  }

  test('is that of a claim once all transactions have ended that were open at the next one', () => {
    expect(after([10, 100, 100], [15, 100, 103], [20, 102, 110])).toBe('0')
    expect(after([10, 100, 100], [15, 100, 103], [20, 103, 110])).toBe('10')
    expect(after([10, 100, 100], [15, 100, 103], [20, 103, 110], [30, 110, 120])).toBe('15')
  })

  test('is searched again if the sequence began again', () => {
    expect(after([10, 100, 100], [15, 100, 103], [20, 103, 110], [2, 3, 3])).toBe('0')
    expect(after([10, 100, 100], [15, 100, 103], [20, 103, 110], [2, 3, 3], [4, 3, 5], [6, 5, 7])).toBe('2')
  })
})

describe.skipIf(!findPostgres())('the events that a claim examines', () => {
  const postgres = postgresTests()

  /** Opens a transaction until the end of the test, or until it is committed. */
  async function begin(sql: string) {
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    await client.query(`BEGIN; ${sql.replaceAll('$schema', postgres.schema)}`)
    return () => client.query('COMMIT')
  }

  test('begin 500 before the end of those of ended transactions, although a snapshot is open', async () => {
    const get = vi.spyOn(LowMarkTracker.prototype, 'get')
    onTestFinished(() => get.mockRestore())
    const handled: string[] = []
    const receiver = postgres.receiver().onAny(({ mediaId }) => void handled.push(mediaId))
    await receiver.ready()
    await postgres.query("SELECT setval('$schema.event_id', 10000)")
    await begin('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM $schema.event')
    const handleSome = async (name: string) => {
      for (let index = 0; index < 10; index++) {
        await accept(receiver, `${name} ${index}`)
        await vi.waitFor(() => expect(handled).toContain(`${name} ${index}`))
      }
    }
    const lastId = async () =>
      Number((await postgres.query<{ id: string }>('SELECT last_value AS id FROM $schema.event_id'))[0]?.id)
    const firstId = async () => Number((await get.mock.results.at(-1)?.value)?.event)
    await handleSome('snapshot')
    expect(await firstId()).toBeGreaterThan((await lastId()) - 506)
    // A transaction that has taken an id, and has not committed.
    const commit = await begin("CREATE TEMPORARY TABLE taken AS SELECT nextval('$schema.event_id')")
    const taken = await lastId()
    await handleSome('writing')
    expect(await firstId()).toBeLessThan(taken - 500)
    await commit()
    await handleSome('committed')
    expect(await firstId()).toBeGreaterThan((await lastId()) - 506)
  })
})
