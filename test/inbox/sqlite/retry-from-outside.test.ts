import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { startProgram } from './processes/start.ts'
import { crashed, freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const looksForLanes = 'SELECT media, turn'
const failures = [{ handler: 'b', message: 'Error: no' }]
const later = { status: 'retry', delayMs: 3_600_000, completed: ['a'], failures } as const

/** Opens an inbox with an event that waits an hour for its next attempt, and its file beside it. */
async function withRetry(options: { database?: ReturnType<typeof watched>['database'] } = {}, path?: string) {
  const at = path ?? (await freshPath())
  const subject = started(options.database === undefined ? { path: at } : { database: options.database })
  const { inbox, calls } = subject
  await inbox.accept(eventOf('one'))
  ;(await calls.next()).finish(later)
  const file = openInboxFile(at)
  onTestFinished(() => file.close())
  await until(async () => file.stats().retrying === 1)
  return { ...subject, path: at, file }
}

describe('a retry that another process asks for', () => {
  test('is started by the process that has the inbox open', async () => {
    const { path, calls, inbox } = await withRetry()
    const { first } = await startProgram('retrying', [path, 'one'])
    expect(first).toBe(true)
    const { attempt } = await calls.next()
    expect([attempt.number, attempt.completed]).toEqual([2, ['a']])
    expect(await inbox.events?.get('one')).toMatchObject({ state: 'running', attempts: 2 })
  })

  test('is started once, and does not shorten the pause after it', async () => {
    const path = await freshPath()
    const { database, count } = watched(path)
    const { calls, inbox, file } = await withRetry({ database }, path)
    expect(await file.events.retryNow('one')).toBe(true)
    expect(await file.events.retryNow('one')).toBe(false)
    ;(await calls.next()).finish(later)
    await until(async () => file.stats().retrying === 1)
    // Another change of the file makes the inbox check it again.
    const looks = count(looksForLanes)
    const other = openDatabase(path)
    other.exec('CREATE TABLE mine (a)')
    other.close()
    await until(async () => count(looksForLanes) > looks)
    await inbox.accept(eventOf('two'))
    expect((await calls.next()).event.key).toBe('two')
    expect(await inbox.events?.get('one')).toMatchObject({ state: 'retrying', attempts: 2 })
  })

  test('is started once if the inbox finds it while others write, and has to wait', async () => {
    const path = await freshPath()
    const { database, count } = watched(path)
    const { calls, inbox, file } = await withRetry({ database }, path)
    const other = openDatabase(path)
    onTestFinished(() => void other.close())
    expect(await file.events.retryNow('one')).toBe(true)
    for (const sql of ['CREATE TABLE mine (a)', 'DROP TABLE mine']) {
      const before = count('BEGIN')
      other.exec('BEGIN IMMEDIATE')
      await until(async () => count('BEGIN') > before)
      other.exec(sql)
      other.exec('COMMIT')
    }
    ;(await calls.next()).finish(later)
    await inbox.accept(eventOf('two'))
    expect((await calls.next()).event.key).toBe('two')
    expect(await inbox.events?.get('one')).toMatchObject({ state: 'retrying', attempts: 2 })
  })

  test('is started by the next process, if none has the inbox open', async () => {
    const { path, inbox, file } = await withRetry()
    await inbox.close()
    expect(await file.events.retryNow('one')).toBe(true)
    expect(file.stats()).toMatchObject({ waiting: 1, retrying: 0 })
    const { calls } = started({ path })
    const { attempt, finish } = await calls.next()
    expect(attempt.number).toBe(2)
    finish(later)
    await until(async () => file.stats().retrying === 1)
    // The request does not shorten this pause too.
    const record = await file.events.get('one')
    expect(record?.dueAt?.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
  })

  test('is started later if the file could not be written at first', async () => {
    const path = await freshPath()
    const { database, failing, ran } = watched(path)
    const { file, calls, lines } = await withRetry({ database }, path)
    failing.sql = /^UPDATE inbox_lane SET owner = \?/
    expect(await file.events.retryNow('one')).toBe(true)
    const message = 'the inbox could not claim events'
    await until(async () => lines.includes(message))
    const tries = ran.length
    await until(async () => ran.slice(tries).filter((sql) => failing.sql.test(sql)).length > 2)
    failing.sql = nothing
    expect((await calls.next()).attempt.number).toBe(2)
    expect(lines.filter((line) => line === message)).toHaveLength(1)
  })

  test('is not possible for events that do not wait for one', async () => {
    const { calls, inbox, file } = await withRetry()
    await inbox.accept(eventOf('running'))
    await calls.next()
    for (const key of ['running', 'unknown']) expect(await file.events.retryNow(key)).toBe(false)
  })
})

test('a retry that was started by hand is also due for the next process, if this one crashes', async () => {
  const { path, calls, inbox, file } = await withRetry()
  expect(await inbox.events?.retryNow('one')).toBe(true)
  await calls.next()
  await until(async () => file.stats().retrying === 0)
  const { calls: afterCrash } = started({ path: await crashed(path) })
  expect((await afterCrash.next()).attempt.number).toBe(2)
})
