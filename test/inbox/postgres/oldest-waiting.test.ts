import { describe, expect, onTestFinished, test } from 'vitest'
import { openInboxDatabase, postgresInbox } from '../../../src/inbox/postgres.ts'
import { samplePayload } from '../../../src/testing/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

const failures = [{ handler: 'a', message: 'no' }]
const longAgo = new Date(0)
const old = (key: string) => ({ ...eventOf(key, 'm'), receivedAt: longAgo })

describe.skipIf(!findPostgres())('an event in Postgres waits', () => {
  const postgres = postgresTests()

  async function openDatabase() {
    const database = await openInboxDatabase({ connection: postgres.server.url, schema: postgres.schema })
    onTestFinished(() => database.close())
    return database
  }

  function open() {
    const opened = openInbox(postgresInbox({ pool: postgres.pool, schema: postgres.schema }))
    onTestFinished(async () => {
      opened.calls.finishAll()
      await opened.inbox.close({ timeoutMs: 1_000 })
    })
    return opened
  }

  test('since the receipt of its delivery, if it is new', async () => {
    const { inbox } = postgres.receiver({ handles: false }).onAny(() => {})
    await inbox.accept(old('one'))
    expect((await inbox.stats()).oldestWaitingAt).toEqual(longAgo)
  })

  test('since its replay, if it was a dead letter, also in the process that has its lane', async () => {
    const { inbox, calls } = open()
    await inbox.accept(old('dead'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.accept(old('running'))
    await calls.next()
    const { deadLetters } = await openDatabase()
    const before = Date.now()
    expect(await deadLetters.replay('dead')).toBe(true)
    const after = Date.now() + 1
    const { waiting, oldestWaitingAt } = await inbox.stats()
    expect(waiting).toBe(1)
    expect(oldestWaitingAt?.getTime()).toBeGreaterThanOrEqual(before)
    expect(oldestWaitingAt?.getTime()).toBeLessThanOrEqual(after)
    expect(await inbox.events?.get('dead')).toMatchObject({ state: 'waiting', receivedAt: longAgo })
  })

  test('since its replay, if its delivery could not be read before', async () => {
    const { inbox } = postgres.receiver({ handles: false }).onAny(() => {})
    const body = new TextEncoder().encode(JSON.stringify(samplePayload('encoding.finished')))
    await inbox.keepUnreadable?.({ reason: 'not known then', receivedAt: longAgo, eventId: undefined, body })
    const [unreadable] = await inbox.deadLetters.list()
    const before = Date.now()
    expect(await inbox.deadLetters.replay(unreadable?.key ?? '')).toBe(true)
    const { waiting, oldestWaitingAt } = await inbox.stats()
    expect(waiting).toBe(1)
    expect(oldestWaitingAt?.getTime()).toBeGreaterThanOrEqual(before)
  })
})
