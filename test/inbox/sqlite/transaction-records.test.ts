import { describe, expect, test } from 'vitest'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'
import { eventOf } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const codeOf = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Opens an inbox with an event that is being handled, and a table that handlers write to. */
async function handling() {
  const { database, failing } = watched(await freshPath())
  database.exec('CREATE TABLE written (handler TEXT)')
  const { inbox, calls } = started({ database })
  await inbox.accept(eventOf('one'))
  const { attempt } = await calls.next()
  const transact = () =>
    attempt.transaction?.({ handler: 'a', signal: attempt.signal }, (client: SqliteDatabase) => {
      client.prepare("INSERT INTO written VALUES ('a')").run()
      return 'result'
    })
  const written = () => database.prepare('SELECT handler FROM written').all()
  return { inbox, transact, written, failing }
}

describe('a transaction', () => {
  test('whose commit fails waits until the file can be read, and is then known to have failed', async () => {
    const { transact, written, failing } = await handling()
    failing.sql = /^(COMMIT|SELECT completed)/
    let isOver = false
    const failed = expect(transact()?.finally(() => (isOver = true))).rejects.toEqual(codeOf('unavailable'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(isOver).toBe(false)
    failing.sql = nothing
    await failed
    expect(written()).toEqual([])
    expect(await transact()).toBe('result')
  })

  test('whose commit fails stops waiting for the file when its event is taken away', async () => {
    const { inbox, transact, failing } = await handling()
    failing.sql = /^(COMMIT|SELECT completed)/
    const failed = expect(transact()).rejects.toEqual(codeOf('closing'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    const closed = inbox.close({ timeoutMs: 0 })
    failing.sql = nothing
    await failed
    expect((await closed).unfinished).toHaveLength(1)
  })
})
