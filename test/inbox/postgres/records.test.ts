import { describe, expect, test, vi } from 'vitest'
import { signalled, silent } from '../../handlers/fixture.ts'
import { findPostgres } from '../../postgres/find-postgres.ts'
import { accept, postgresTests } from './fixture.ts'

vi.setConfig({ testTimeout: 20_000 })

describe.skipIf(!findPostgres())('the record of a handled event', () => {
  const postgres = postgresTests()
  const noEvents = () =>
    vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]), 5_000)

  /** Opens a receiver with an event whose handler waits to be finished, and what it logs. */
  async function handling() {
    const logged: [string, string, object][] = []
    const log = (level: string) => (details: object, message: string) => void logged.push([level, message, details])
    const logger = { ...silent, warn: log('warn'), error: log('error') }
    const receiver = postgres.receiver({ timeoutMs: 1_500 }, { logger })
    const [started, finished] = [signalled(), signalled()]
    const handler = vi.fn(async () => {
      started.resolve()
      await finished.promise
    })
    receiver.onAny(handler)
    await receiver.ready()
    await accept(receiver, 'media')
    await started.promise
    return { receiver, handler, logged, finish: () => finished.resolve() }
  }

  test('is written once Postgres can, without a new attempt or a word, when its row is locked for long', async () => {
    const { handler, logged, finish } = await handling()
    const client = await postgres.pool.connect()
    await client.query(`BEGIN; SELECT 1 FROM ${postgres.schema}.event FOR UPDATE`)
    finish()
    await new Promise((resolve) => setTimeout(resolve, 2_200))
    await client.query('COMMIT')
    client.release()
    await noEvents()
    expect(handler).toHaveBeenCalledTimes(1)
    expect(logged).toEqual([])
  })

  test('is written again and again when the statement fails, which is logged', async () => {
    const { handler, logged, finish } = await handling()
    await postgres.query('ALTER TABLE $schema.event RENAME TO moved')
    finish()
    const failed = ['error', 'the inbox could not record the result of events', { err: expect.any(Error) }]
    await vi.waitFor(() => expect(logged).toContainEqual(failed))
    await postgres.query('ALTER TABLE $schema.moved RENAME TO event')
    await noEvents()
    expect(handler).toHaveBeenCalledTimes(1)
    expect(logged.filter(([level]) => level === 'warn')).toEqual([])
  })

  test('warns where another process has an event whose result it records, and only there', async () => {
    const warnings: unknown[] = []
    const warn = (details: object, message: string) => void warnings.push([details, message])
    const receiver = postgres.receiver({}, { logger: { ...silent, warn }, eventKey: ({ mediaId }) => mediaId })
    let handled = 0
    receiver.onAny(async ({ mediaId }) => {
      if (mediaId === 'taken') await postgres.query('UPDATE $schema.event SET owner = gen_random_uuid()')
      handled++
    })
    await receiver.ready()
    await accept(receiver, 'kept')
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]))
    expect(warnings).toEqual([])
    await accept(receiver, 'taken')
    await vi.waitFor(() => expect(warnings).toHaveLength(1))
    expect(warnings).toEqual([[{ key: 'taken' }, 'the lease of an event was lost before its result was recorded']])
    expect(handled).toBe(2)
    expect(await postgres.query('SELECT 1 FROM $schema.event')).toHaveLength(1)
  })
})
