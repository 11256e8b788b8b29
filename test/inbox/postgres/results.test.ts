import { describe, expect, onTestFinished, test } from 'vitest'
import type { AttemptResult } from '../../../src/inbox/inbox.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { postgresTests } from './postgres-tests.ts'

const delayMs = 600_000
const failures = [{ handler: 'b', message: 'Error: no' }]
const retry: AttemptResult = { status: 'retry', delayMs, completed: ['a'], failures }
/** Nothing failed: other processes have handlers of the event, or they are paused. */
const release: AttemptResult = { status: 'retry', delayMs: 0, completed: ['a'], failures: [], counts: false }
const dead: AttemptResult = { status: 'dead', completed: ['a'], failures }

describe.skipIf(!findPostgres())('the result of an attempt', () => {
  const postgres = postgresTests()

  /** Opens an inbox that has begun an attempt. */
  async function begun() {
    const { pool, schema } = postgres
    const { logger, lines } = recordingLogger('warn')
    const { inbox, calls } = openInbox(postgresInbox({ pool, schema }), logger)
    onTestFinished(async () => {
      calls.finishAll()
      await inbox.close({ timeoutMs: 1_000 })
    })
    await inbox.ready?.()
    await inbox.accept(eventOf('one'))
    return { inbox, call: await calls.next(), lines }
  }

  test.each<[string, AttemptResult, object]>([
    ['a retry', retry, { attempts: 1, crashes: 0, failed: [expect.objectContaining({ failures })] }],
    [
      'a retry that does not count',
      { ...retry, counts: false },
      { attempts: 0, crashes: 0, failed: expect.anything() },
    ],
    ['a release', release, { attempts: 0, crashes: 3, failed: null }],
  ])('adds %s to what is recorded, and gives the event to all processes', async (_, result, row) => {
    const { call } = await begun()
    expect(await postgres.held()).toHaveLength(1)
    await postgres.query("UPDATE $schema.event SET crashes = 3, completed = '{written}'")
    call.finish(result)
    await until(async () => (await postgres.query('SELECT FROM $schema.event WHERE due_at > now()')).length === 1)
    expect(await postgres.query('SELECT attempts, crashes, failed FROM $schema.event')).toEqual([row])
    expect(await postgres.query('SELECT unnest(completed) AS name FROM $schema.event ORDER BY 1')).toEqual([
      { name: 'a' },
      { name: 'written' },
    ])
    expect(await postgres.held()).toEqual([])
  })

  test('keeps the failures of the last attempt that failed when none does', async () => {
    const { call } = await begun()
    await postgres.query(`UPDATE $schema.event SET failed = '["earlier"]'`)
    call.finish({ ...release, delayMs, counts: undefined })
    await until(async () => (await postgres.query('SELECT FROM $schema.event WHERE due_at > now()')).length === 1)
    expect(await postgres.query('SELECT attempts, failed FROM $schema.event')).toEqual([
      { attempts: 1, failed: ['earlier'] },
    ])
  })

  test('adds to the handlers that are recorded: progress, a transaction and a dead letter', async () => {
    const { inbox, call } = await begun()
    await postgres.query("UPDATE $schema.event SET completed = '{written}'")
    await call.attempt.succeeded?.('a')
    const { signal } = new AbortController()
    await call.attempt.transaction?.({ handler: 'c', signal }, () => Promise.resolve())
    const names = async () =>
      (await postgres.query<{ name: string }>('SELECT unnest(completed) AS name FROM $schema.event ORDER BY 1')).map(
        ({ name }) => name,
      )
    expect(await names()).toEqual(['a', 'c', 'written'])
    call.finish({ ...dead, completed: ['b'] })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    expect((await inbox.deadLetters.get('one'))?.completed.toSorted()).toEqual(['a', 'b', 'c', 'written'])
  })

  test('of an event that became a dead letter and was replayed counts no more', async () => {
    const { inbox, call, lines } = await begun()
    const { attempt } = call
    // The record was written, and the answer that says so was lost: this attempt ends again.
    call.finish(dead)
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    await inbox.deadLetters.replay('one')
    const signal = new AbortController().signal
    const late = attempt.transaction?.({ handler: 'c', signal }, () => Promise.resolve())
    await expect(late).rejects.toMatchObject({ code: 'lease_lost' })
    expect(lines).toEqual([])
  })
})
