import { describe, expect, test } from 'vitest'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'
import { type Call, eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const codeOf = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Opens an inbox with an event that is being handled, and a table that handlers write to. */
async function handling() {
  const { database, failing } = watched(await freshPath())
  database.exec('PRAGMA foreign_keys = ON; CREATE TABLE media (id TEXT PRIMARY KEY)')
  database.exec('CREATE TABLE written (handler TEXT, media TEXT REFERENCES media (id) DEFERRABLE INITIALLY DEFERRED)')
  const { inbox, calls } = started({ database })
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  const transact = (handler: string, media: string | null = null, of: Call = call) =>
    of.attempt.transaction?.({ handler, signal: of.attempt.signal }, (client: SqliteDatabase) => {
      client.prepare('INSERT INTO written VALUES (?, ?)').run(handler, media)
      return 'result'
    })
  const written = () =>
    (database.prepare('SELECT handler FROM written').all() as { handler: string }[]).map(({ handler }) => handler)
  return { inbox, call, calls, transact, written, failing }
}

describe('a transaction', () => {
  test('of a handler that has completed writes nothing', async () => {
    const { transact, written } = await handling()
    expect(await transact('a')).toBe('result')
    await expect(transact('a')).rejects.toEqual(codeOf('lease_lost'))
    expect(await transact('b')).toBe('result')
    expect(written()).toEqual(['a', 'b'])
  })

  test('of a handler that has completed also writes nothing in a later attempt, even if the previous attempt says otherwise', async () => {
    const { call, calls, transact, written } = await handling()
    await transact('a')
    // This acts as if its answer had been lost.
    call.finish({ status: 'retry', delayMs: 1, completed: ['b'], failures: [] })
    const next = await calls.next()
    await expect(transact('a', null, next)).rejects.toEqual(codeOf('lease_lost'))
    await expect(transact('b', null, next)).rejects.toEqual(codeOf('lease_lost'))
    expect(await transact('c', null, next)).toBe('result')
    expect(written()).toEqual(['a', 'c'])
  })

  test('of an event that has ended writes nothing', async () => {
    const { inbox, call, transact, written } = await handling()
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    await expect(transact('a')).rejects.toEqual(codeOf('lease_lost'))
    expect(written()).toEqual([])
  })

  test('whose commit fails waits until the file can be read, and is then known to have failed', async () => {
    const { transact, written, failing } = await handling()
    failing.sql = /^(COMMIT|SELECT completed)/
    let isOver = false
    const failed = expect(transact('a')?.finally(() => (isOver = true))).rejects.toEqual(codeOf('unavailable'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(isOver).toBe(false)
    failing.sql = nothing
    await failed
    expect(written()).toEqual([])
    expect(await transact('a')).toBe('result')
  })

  test('whose commit fails stops waiting for the file when its event is taken away', async () => {
    const { inbox, transact, failing } = await handling()
    failing.sql = /^(COMMIT|SELECT completed)/
    const failed = expect(transact('a')).rejects.toEqual(codeOf('closing'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    const closed = inbox.close({ timeoutMs: 0 })
    failing.sql = nothing
    await failed
    expect((await closed).unfinished).toHaveLength(1)
  })

  test('that fails in its commit does not keep the events of the same commit from being accepted', async () => {
    const { inbox, transact, written } = await handling()
    const [transacted, accepted] = [transact('a', 'no such media'), inbox.accept(eventOf('two'))]
    // The error of the driver, so that the handler can tell what it has violated.
    await expect(transacted).rejects.toThrow(/^FOREIGN KEY constraint failed/)
    expect(await accepted).toBe('accepted')
    expect(await inbox.accept(eventOf('two'))).toBe('duplicate')
    expect(written()).toEqual([])
  })
})
