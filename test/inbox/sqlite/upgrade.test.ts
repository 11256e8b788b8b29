import { describe, expect, onTestFinished, test } from 'vitest'
import type { EventRecord } from '../../../src/inbox/reading.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { hashWithoutTime } from '../../../src/inbox/sqlite/hash.ts'
import { openInboxFile, type SqliteDatabase } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { watched } from './watched.ts'

/** The tables as the releases made them that kept nothing of handled events. */
const tables = `
  CREATE TABLE inbox_schema (version INTEGER NOT NULL);
  INSERT INTO inbox_schema VALUES (1);
  CREATE TABLE inbox_key (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, accepted_at INTEGER NOT NULL);
  CREATE TABLE inbox_event (
    id INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    completed TEXT NOT NULL DEFAULT '[]',
    due_at INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    delay_ms INTEGER
  );
  CREATE TABLE inbox_owner (token TEXT NOT NULL, pid INTEGER NOT NULL, crashes INTEGER NOT NULL, alone INTEGER);
  CREATE TABLE inbox_dead_letter (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    event_id INTEGER UNIQUE,
    replay INTEGER NOT NULL DEFAULT 0,
    dead_letter TEXT NOT NULL,
    body BLOB
  );
`

const failures = [{ handler: 'b', message: 'Error: no' }]

/** Does what such a release does to the tables, with its statements. */
function earlierRelease(database: SqliteDatabase) {
  const remember = database.prepare('INSERT INTO inbox_key (hash, accepted_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
  const insert = database.prepare('INSERT INTO inbox_event (id, event, received_at) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM inbox_event WHERE id = ?')
  const postpone = database.prepare(
    'UPDATE inbox_event SET attempts = ?, completed = ?, due_at = ?, delay_ms = ?, starts = 0 WHERE id = ?',
  )
  const makeDeadLetter = database.prepare(
    `INSERT INTO inbox_dead_letter (hash, event_id, dead_letter, body) VALUES (?, ?, ?, ?)
     ON CONFLICT (hash) DO NOTHING`,
  )
  const accept = (key: string): number => {
    const { event, receivedAt } = eventOf(key, 'media')
    const row = Number(remember.run(hashWithoutTime(key), Date.now()).lastInsertRowid)
    insert.run(row, JSON.stringify(event), receivedAt.getTime())
    return row
  }
  return {
    open: () => database.exec('DELETE FROM inbox_schema; INSERT INTO inbox_schema VALUES (1)'),
    waiting: accept,
    retrying: (key: string) => postpone.run(1, '["a"]', Date.now() + 3_600_000, 3_600_000, accept(key)),
    handled: (key: string) => remove.run(accept(key)),
    dead(key: string) {
      const row = accept(key)
      remove.run(row)
      const { event, receivedAt } = eventOf(key, 'media')
      const deadLetter = { event, receivedAt, key, attempts: 5, failures, diedAt: new Date(), completed: ['a'] }
      makeDeadLetter.run(hashWithoutTime(key), row, JSON.stringify(deadLetter), null)
    },
    rows: () => database.prepare('SELECT * FROM inbox_event').all() as Record<string, unknown>[],
  }
}

/** Makes a file of such a release, with an event in each state. It stays open. */
async function earlierFile() {
  const path = await freshPath()
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  database.exec('PRAGMA journal_mode = WAL')
  database.exec(tables)
  const release = earlierRelease(database)
  release.handled('handled')
  release.dead('dead')
  release.retrying('retrying')
  release.waiting('waiting')
  return { path, database, release }
}

const story = (records: readonly EventRecord[] = []) => records.map(({ key, state }) => `${key}: ${state}`)

describe('the file of an earlier release', () => {
  test('is opened with its events, dead letters and keys, and tells what it knows of them', async () => {
    const { path } = await earlierFile()
    const { inbox, calls } = started({ path })
    const waiting = await calls.next()
    expect([waiting.event, waiting.trace]).toEqual([eventOf('waiting', 'media').event, undefined])
    const unfinished = ['dead: dead', 'retrying: retrying', 'waiting: running']
    expect(story(await inbox.history?.('media'))).toEqual(unfinished)
    expect(story((await inbox.events?.list({ order: 'oldest' }))?.events)).toEqual(unfinished)
    expect(await inbox.events?.get('handled')).toBe(undefined)
    expect(await inbox.accept(eventOf('handled', 'media'))).toBe('duplicate')
    expect(await inbox.events?.get('retrying')).toMatchObject({ attempts: 1, completed: ['a'], failedAttempts: [] })
    expect(await inbox.events?.get('dead')).toMatchObject({ failedAttempts: [{ number: 5, failures }] })
    waiting.finish()
    await until(async () => (await inbox.events?.get('waiting'))?.state === 'handled')
    expect(await inbox.deadLetters.replay('dead')).toBe(true)
    const replayed = await calls.next()
    expect([replayed.event.key, replayed.attempt.completed]).toEqual(['dead', ['a']])
    replayed.finish()
    await until(async () => (await inbox.events?.get('dead'))?.state === 'handled')
    expect(story(await inbox.history?.('media'))).toEqual(['dead: handled', 'retrying: retrying', 'waiting: handled'])
  })

  test('has its keys if they have a time, which this release stores in another form', async () => {
    const { path, release } = await earlierFile()
    const keyOf = (name: string) => JSON.stringify([name, '2026-03-01T12:00:00Z'])
    for (const state of ['handled', 'dead', 'retrying'] as const) release[state](keyOf(state))
    const { inbox, calls } = started({ path })
    ;(await calls.next()).finish()
    for (const state of ['handled', 'dead', 'retrying'])
      expect(await inbox.accept(eventOf(keyOf(state), 'media'))).toBe('duplicate')
    expect(await inbox.accept(eventOf(keyOf('new'), 'media'))).toBe('accepted')
    ;(await calls.next()).finish()
    expect(await inbox.accept(eventOf(keyOf('new'), 'media'))).toBe('duplicate')
    const [retrying, dead] = [keyOf('retrying'), keyOf('dead')]
    expect(await inbox.events?.get(retrying)).toMatchObject({ key: retrying, state: 'retrying' })
    expect(await inbox.deadLetters.get(dead)).toMatchObject({ key: dead })
    const file = openInboxFile(path)
    onTestFinished(() => file.close())
    expect(file.events.retryNow(retrying)).toBe(true)
    const retried = await calls.next()
    expect(retried.event.key).toBe(retrying)
    retried.finish()
    expect(file.deadLetters.replay(dead)).toBe(true)
    const replayed = await calls.next()
    expect(replayed.event.key).toBe(dead)
    replayed.finish()
    await until(async () => (await inbox.events?.get(dead))?.state === 'handled')
    expect(await inbox.deadLetters.get(dead)).toBe(undefined)
  })

  test('can be read while that release has it open and continues to use it', async () => {
    const { path, release } = await earlierFile()
    const file = openInboxFile(path)
    onTestFinished(() => file.close())
    expect(story((await file.events.list({ order: 'oldest' })).events)).toEqual([
      'dead: dead',
      'retrying: retrying',
      'waiting: waiting',
    ])
    expect(file.events.retryNow('retrying')).toBe(true)
    expect(file.deadLetters.replay('dead')).toBe(true)
    release.waiting('later')
    release.handled('later and handled')
    expect(release.rows().map(({ id }) => id)).toEqual([2, 3, 4, 5])
    expect(file.stats()).toMatchObject({ waiting: 4, retrying: 0, deadLetters: 0 })
    expect(file.activity(new Date(0))).toEqual([])
    expect(file.expected()).toEqual([])
    expect(file.stats()).not.toHaveProperty('expected')
  })

  test('keeps expectations, also while that release has it open', async () => {
    const { path, release } = await earlierFile()
    const first = started({ path })
    ;(await first.calls.next()).finish()
    const dueAt = new Date(Date.now() + 300)
    const overdue = { ...eventOf('overdue:rule:one', 'media'), receivedAt: dueAt }
    first.effects.set('one', { at: new Date(), begins: [{ rule: 'rule', dueAt, overdue }], ends: [] })
    await first.inbox.accept(eventOf('one', 'media'))
    ;(await first.calls.next()).finish()
    await first.inbox.close()
    release.open()
    release.handled('handled meanwhile')
    expect((await started({ path }).calls.next()).event).toEqual(overdue.event)
  })

  test('has the media of its keys looked for once, and again after that release had it open', async () => {
    const { path, release } = await earlierFile()
    const searches = async () => {
      const { database, ran } = watched(path)
      await started({ database }).inbox.close()
      database.close()
      return ran.filter((sql) => sql.includes('k.media IS NULL')).length
    }
    expect([await searches(), await searches()]).toEqual([1, 0])
    release.open()
    expect([await searches(), await searches()]).toEqual([1, 0])
  })

  test('is upgraded in place and can be used by that release again, and then by this one', async () => {
    const { path, release } = await earlierFile()
    const first = started({ path })
    ;(await first.calls.next()).finish()
    await until(async () => (await first.inbox.events?.get('waiting'))?.state === 'handled')
    await first.inbox.close()
    release.open()
    release.handled('handled meanwhile')
    release.dead('dead meanwhile')
    release.waiting('waiting meanwhile')
    const { inbox, calls } = started({ path })
    expect((await calls.next()).event.key).toBe('waiting meanwhile')
    expect(story(await inbox.history?.('media'))).toEqual([
      'dead: dead',
      'retrying: retrying',
      'waiting: handled',
      'dead meanwhile: dead',
      'waiting meanwhile: running',
    ])
    expect(await inbox.accept(eventOf('handled meanwhile'))).toBe('duplicate')
  })
})
