import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import Libsql from 'libsql'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile, type SqliteDatabase, type SqliteStatement, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { startProgram } from './processes/start.ts'
import { drivers, freshPath, started } from './sqlite-tests.ts'

const run = promisify(execFile)
/** Uses the file as another program would. */
function withDatabase(path: string, use: (database: SqliteDatabase) => void) {
  const database = openDatabase(path)
  use(database)
  database.close()
}

const withCode = (code: string, message: string | RegExp = '') =>
  expect.objectContaining({ name: 'WebhookError', code, message: expect.stringMatching(message) })

describe('the file of an inbox', () => {
  test('is made if there is none', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('cannot be opened by another process until the first has closed it', async () => {
    const path = await freshPath()
    const { child } = await startProgram('first-owner', [path])
    expect(() => started({ path })).toThrow(withCode('unavailable', /inbox\.db.*another process.*has it open/))
    const link = join(dirname(path), 'link.db')
    await symlink(path, link)
    expect(() => started({ path: link })).toThrow(withCode('unavailable', /has it open/))
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    started({ path })
  })

  test('can be opened although its -lock file is damaged, and still by one process', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.close()
    for (const content of [
      'no database at all',
      Buffer.alloc(5_000, 0xff),
      (await readFile(path)).subarray(0, 1_500),
    ]) {
      await writeFile(`${path}-lock`, content)
      const again = started({ path })
      await expect(startProgram('first-owner', [path])).rejects.toThrow()
      await again.inbox.close()
    }
  })

  test.each([
    ['writes', 'PRAGMA journal_mode = WAL; BEGIN IMMEDIATE'],
    ['keeps all others away', 'BEGIN EXCLUSIVE'],
  ])('cannot be opened while another program %s, and the error says so', async (_, begin) => {
    const path = await freshPath()
    const other = openDatabase(path)
    other.exec('CREATE TABLE mine (a)')
    other.exec(begin)
    const definition = sqliteInbox({ path })
    const open = () => openInbox(definition)
    expect(open).toThrow(withCode('unavailable', /another program holds a lock on it, such as a backup/))
    other.exec('COMMIT')
    other.close()
    await open().inbox.close()
  })

  test.each([
    ['new', 'is written', 'BEGIN IMMEDIATE'],
    ['new', 'is kept from all others', 'BEGIN EXCLUSIVE'],
    ['new', 'is read', 'BEGIN; SELECT count(*) FROM sqlite_schema'],
    ["an inbox's", 'is written', 'BEGIN IMMEDIATE'],
    ["an inbox's", 'is kept from all others', 'BEGIN EXCLUSIVE'],
  ])('waits for another program if the file is %s and %s for 1.5 s', async (file, _, begin) => {
    const path = await freshPath()
    if (file === 'new') withDatabase(path, (database) => database.exec('CREATE TABLE mine (a)'))
    else await started({ path }).inbox.close()
    await startProgram('other-writer', [path, 1_500, 0, 1, begin])
    expect(await started({ path }).inbox.accept(eventOf('one'))).toBe('accepted')
  })

  test('stays with its inbox if another of this process cannot open it', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    const other = openDatabase(path)
    other.exec('BEGIN IMMEDIATE')
    expect(() => started({ path })).toThrow(withCode('unavailable', /another program holds a lock/))
    other.exec('COMMIT')
    other.close()
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    ;(await calls.next()).finish()
  })

  test('is read once another program lets it', async () => {
    const path = await freshPath()
    await started({ path }).inbox.close()
    // A connection of libsql may keep its locks for a while after it was closed.
    const copy = await freshPath()
    await copyFile(path, copy)
    withDatabase(copy, (database) => database.exec('PRAGMA journal_mode = DELETE'))
    await startProgram('other-writer', [copy, 1_500, 0, 1, 'BEGIN EXCLUSIVE'])
    const file = openInboxFile(copy)
    expect(file.stats()).toMatchObject({ waiting: 0 })
    file.close()
  })

  test.each(Object.entries(drivers))(
    'moves to a second connection of %s, and the first can still be used',
    async (_, open) => {
      const path = await freshPath()
      const database = open(path)
      const { inbox } = started({ database })
      started({ database: open(path) })
      await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
      await inbox.close()
      expect(database.prepare('SELECT 1 AS one').get()).toMatchObject({ one: 1 })
    },
  )

  test('cannot be opened when it is not a database', async () => {
    const path = await freshPath()
    await writeFile(path, 'This is a text, and nothing that SQLite would have written. '.repeat(100))
    expect(() => started({ path })).toThrow(withCode('unavailable', /not a database \(is it a SQLite file\?/))
  })

  test('cannot be opened when a page of it is corrupt', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.close()
    withDatabase(path, (database) => database.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
    const corrupt = await freshPath()
    // The header is right, and the pages that it promises are not there.
    await writeFile(corrupt, Buffer.concat([await readStart(path, 100), Buffer.alloc(20_000, 0xff)]))
    expect(() => started({ path: corrupt })).toThrow(withCode('unavailable', /malformed|not a database/))
  })

  test('is opened although an event in it cannot be read, which becomes a dead letter', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.accept(eventOf('one'))
    await inbox.accept(eventOf('two'))
    await inbox.close({ timeoutMs: 0 })
    const database = openDatabase(path)
    database.exec("UPDATE inbox_event SET event = '{' || event WHERE id = 2")
    database.close()
    const next = started({ path })
    expect((await next.calls.next()).event.key).toBe('one')
    await expect.poll(() => next.inbox.stats()).toMatchObject({ waiting: 0, running: 1, deadLetters: 1 })
  })

  test('cannot be opened when a newer version made it, and stays as it is', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.close()
    const database = openDatabase(path)
    const change = (version: number, from: string, to: string) =>
      database.exec(
        `UPDATE inbox_schema SET version = ${version}; ALTER TABLE inbox_expectation RENAME ${from} TO ${to}`,
      )
    change(2, 'subject', 'renamed')
    expect(() => started({ path })).toThrow(withCode('unavailable', /newer version/))
    expect(() => openInboxFile(path)).toThrow(withCode('unavailable', /newer version/))
    expect(database.prepare('SELECT version FROM inbox_schema').all()).toMatchObject([{ version: 2 }])
    change(1, 'renamed', 'subject')
    started({ path })
  })

  test('cannot be opened when it cannot be written', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.close()
    await chmod(path, 0o444)
    await chmod(dirname(path), 0o555)
    await expect(openAsNobody(path)).rejects.toThrow(
      /WebhookError: the inbox file .* cannot be used: .*(cannot be locked|unable to open|readonly).*\(the process must be able to write/,
    )
    await chmod(dirname(path), 0o777)
    await chmod(`${path}-lock`, 0o666)
    await expect(openAsNobody(path)).rejects.toThrow(
      /WebhookError: the inbox file .* cannot be used: .*(readonly|unable to open)/,
    )
  })

  test('holds every event by itself once its inbox is closed', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.accept(eventOf('one'))
    await inbox.close({ timeoutMs: 0 })
    const copy = await freshPath()
    await copyFile(path, copy)
    const file = openInboxFile(copy)
    expect(file.stats().waiting).toBe(1)
    file.close()
  })

  test('cannot be opened if its folder is missing, or if it is a folder', async () => {
    const path = await freshPath()
    expect(() => started({ path: join(path, 'deeper') })).toThrow(withCode('unavailable', /there is no folder/))
    await mkdir(path)
    expect(() => started({ path })).toThrow(withCode('unavailable', /unable to open/i))
  })

  test('is not made by openInboxFile', async () => {
    const path = await freshPath()
    expect(() => openInboxFile(path)).toThrow(withCode('invalid_option', /no inbox file/))
    const database = openDatabase(path)
    database.exec('CREATE TABLE mine (a)')
    expect(() => openInboxFile(path)).toThrow(withCode('unavailable', /not the file of an inbox/))
    expect(database.prepare('PRAGMA journal_mode').get()).toMatchObject({ journal_mode: 'delete' })
    database.close()
  })
})

async function readStart(path: string, bytes: number): Promise<Buffer> {
  return (await readFile(path)).subarray(0, bytes)
}

/**
 * Opens an inbox in a process without the rights of root. It gives up those rights once it has opened another inbox,
 * since its modules may lie in a folder that only root can read.
 */
const openAsNobody = (path: string) => {
  const script = `
    import { sqliteInbox } from './src/inbox/sqlite.ts'
    const host = { handle: async () => ({ status: 'done' }), parse() {}, logger: console, observe() {} }
    if (process.getuid() === 0) {
      sqliteInbox({ path: ${JSON.stringify(`${path}-other`)} }).open(host)
      process.setgid(65_534)
      process.setuid(65_534)
    }
    sqliteInbox({ path: ${JSON.stringify(path)} }).open(host)`
  return run(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    cwd: join(import.meta.dirname, '../../..'),
    env: { ...process.env, HOME: dirname(path) },
  })
}

describe('the options', () => {
  const inMemory = (): SqliteDatabase => new Libsql(':memory:')

  test('do not take a database in memory, which would lose every event', () => {
    expect(() => started({ database: inMemory() })).toThrow(withCode('invalid_option', /has no file/))
  })

  test.each(Object.entries(drivers))(
    'do not take a database of %s that makes BigInts of numbers',
    async (name, open) => {
      const database = open(await freshPath()) as SqliteDatabase & { defaultSafeIntegers?(on: boolean): void }
      const { prepare } = database
      if (name === 'node:sqlite')
        database.prepare = (sql) => {
          const statement = Reflect.apply(prepare, database, [sql]) as SqliteStatement & {
            setReadBigInts(on: boolean): void
          }
          statement.setReadBigInts(true)
          return statement
        }
      else database.defaultSafeIntegers?.(true)
      expect(() => started({ database })).toThrow(
        withCode('invalid_option', /objects with plain numbers: open it without/),
      )
    },
  )

  test.each([
    ['nothing', {}],
    ['an empty path', { path: '' }],
    ['memory', { path: ':memory:' }],
    ['both a path and a database', { path: 'inbox.db', database: inMemory() }],
    ['no database', { database: untyped({}) }],
    ['a concurrency of 0', { path: 'inbox.db', concurrency: 0 }],
    ['room for nothing', { path: 'inbox.db', maxWaiting: 0 }],
    ['a time that is not a number', { path: 'inbox.db', ttlMs: Number.NaN }],
  ])('do not take %s', (_, options) => {
    expect(() => sqliteInbox(options)).toThrow(withCode('invalid_option'))
  })
})
