import { setTimeout as pause } from 'node:timers/promises'
import { BetterSQLiteSession } from 'drizzle-orm/better-sqlite3/session'
import { BaseSQLiteDatabase, SQLiteSyncDialect, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import type { SqliteDatabase, SqliteStatement } from '../../../src/inbox/sqlite.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import type { ReceiverOptions, RunReport } from '../../../src/index.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { signalled } from '../../support/signalled.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { crashed, drivers, freshPath, started } from './sqlite-tests.ts'

const schema = `
  CREATE TABLE media (id TEXT PRIMARY KEY);
  CREATE TABLE written (content TEXT, media TEXT REFERENCES media (id) DEFERRABLE INITIALLY DEFERRED);
`

/** Makes a receiver over a connection, in a file with a table for its handlers. Both are closed with the test. */
async function subject({
  open = openDatabase,
  wrap = (database) => database,
  options = {},
}: {
  readonly open?: ((path: string) => SqliteDatabase) | undefined
  readonly wrap?: (database: SqliteDatabase) => SqliteDatabase
  readonly options?: Partial<Omit<ReceiverOptions, 'inbox' | 'handlers'>>
} = {}) {
  const path = await freshPath()
  const connection = open(path)
  connection.exec(schema)
  connection.exec('PRAGMA foreign_keys = ON')
  const database = wrap(connection)
  const reports: RunReport[] = []
  const receiver = createReceiver({
    verify: unverified(),
    logger: silent,
    retry: { attempts: 3, baseMs: 1 },
    hooks: { handling: (report) => void reports.push(report) },
    ...options,
    inbox: sqliteInbox({ database }),
  })
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 1_000 })
    connection.close()
  })
  const written = () =>
    (connection.prepare('SELECT content FROM written').all() as { content: string }[]).map((row) => row.content)
  const outcomes = () => reports.map(({ handler, attempt, outcome }) => `${handler} ${attempt} ${outcome}`)
  /** Delivers events together, and returns the statuses of the answers. */
  const send = async (...mediaIds: string[]) => {
    const payloads = mediaIds.map((media_id) => samplePayload('encoding.finished', { media_id }))
    const answers = await Promise.all(payloads.map((payload) => deliver(receiver, payload)))
    return answers.map(({ status }) => status)
  }
  const idle = () =>
    until(async () => {
      const { waiting, running, retrying } = await receiver.inbox.stats()
      return waiting + running + retrying === 0
    })
  return { path, database, receiver, reports, outcomes, written, send, idle }
}

const writtenTable = sqliteTable('written', { content: text() })

const withMessage = (message: RegExp) => expect.objectContaining({ message: expect.stringMatching(message) })

const insert = (database: SqliteDatabase, content: string, media: string | null = null) =>
  void database.prepare('INSERT INTO written VALUES (?, ?)').run(content, media)

describe.each(Object.entries(drivers))('a transaction with %s', (_, open) => {
  test('gets the connection that was given, and its result', async () => {
    const { receiver, written, send, idle, outcomes } = await subject({ open })
    const results: unknown[] = []
    receiver.onAny(
      async (event, { transaction }) => {
        results.push(
          await transaction((client) => {
            insert(client, event.mediaId)
            return client.prepare('SELECT content FROM written').all()
          }),
        )
      },
      { name: 'h' },
    )
    await send('m1')
    await idle()
    expect(results).toMatchObject([[{ content: 'm1' }]])
    expect([written(), outcomes()]).toEqual([['m1'], ['h 1 handled']])
  })

  test('undoes only its own writes when it throws', async () => {
    const { receiver, written, send, idle, reports } = await subject({ open })
    receiver.onAny(
      (event, { transaction, attempt }) =>
        transaction((client) => {
          insert(client, `${event.mediaId} ${attempt}`)
          if (event.mediaId === 'bad' && attempt < 3) throw new Error('unlucky')
        }),
      { name: 'h' },
    )
    expect(await send('m1', 'bad', 'm2', 'm3')).toEqual([200, 200, 200, 200])
    await idle()
    expect(written().sort()).toEqual(['bad 3', 'm1 1', 'm2 1', 'm3 1'])
    expect(reports.filter(({ outcome }) => outcome === 'retried')).toMatchObject([
      { attempt: 1, error: { message: 'unlucky' } },
      { attempt: 2, error: { message: 'unlucky' } },
    ])
  })

  test('fails alone when its writes violate a constraint that the commit checks', async () => {
    const { receiver, written, send, idle, outcomes, reports } = await subject({
      open,
      options: { retry: { attempts: 1 } },
    })
    receiver.onAny(
      (event, { transaction }) =>
        transaction((client) => insert(client, event.mediaId, event.mediaId === 'bad' ? 'no such media' : null)),
      { name: 'h' },
    )
    expect(await send('m1', 'bad', 'm2')).toEqual([200, 200, 200])
    await idle()
    expect(written().sort()).toEqual(['m1', 'm2'])
    expect(outcomes().sort()).toEqual(['h 1 dead-lettered', 'h 1 handled', 'h 1 handled'])
    expect(reports.find(({ mediaId }) => mediaId === 'bad')?.error).toMatchObject({
      message: expect.stringMatching(/FOREIGN KEY/),
    })
  })

  test.each(['ROLLBACK', 'COMMIT'])('fails alone when it runs %s', async (sql) => {
    const { receiver, written, send, idle, reports } = await subject({ open, options: { retry: { attempts: 1 } } })
    receiver.onAny(
      (event, { transaction }) =>
        transaction((client) => {
          if (event.mediaId === 'bad') client.exec(sql)
          else insert(client, event.mediaId)
        }),
      { name: 'h' },
    )
    expect(await send('m1', 'bad', 'm2')).toEqual([200, 200, 200])
    await idle()
    expect(written().sort()).toEqual(['m1', 'm2'])
    expect(reports.find(({ mediaId }) => mediaId === 'bad')).toMatchObject({ outcome: 'dead-lettered' })
  })

  test('is rolled back when its function returns a promise', async () => {
    const { receiver, written, send, idle, reports } = await subject({ open, options: { retry: { attempts: 1 } } })
    receiver.onAny((event, { transaction }) =>
      transaction(
        untyped(async (client: SqliteDatabase) => {
          insert(client, event.mediaId)
          await pause(1)
          throw new Error('later')
        }),
      ),
    )
    await send('m1')
    await idle()
    await pause(5)
    expect(written()).toEqual([])
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { code: 'invalid_transaction' } }])
  })

  test('commits nothing that its function writes after its first await', async () => {
    const { receiver, written, send, idle, reports } = await subject({ open })
    const late: unknown[] = []
    receiver.onAny((event, { transaction }) =>
      transaction(
        untyped(async (client: SqliteDatabase) => {
          const statement = client.prepare('INSERT INTO written VALUES (?, NULL)')
          await pause(1)
          for (const write of [() => insert(client, event.mediaId), () => statement.run('x'), () => client.exec('END')])
            try {
              write()
            } catch (error) {
              late.push(error)
            }
        }),
      ),
    )
    await send('m1')
    await idle()
    await until(async () => late.length === 9)
    expect(written()).toEqual([])
    expect(late).toEqual(Array(9).fill(withMessage(/after the transaction ended/)))
    expect(reports.at(-1)).toMatchObject({ outcome: 'dead-lettered', error: { code: 'invalid_transaction' } })
  })

  test('does not run a lazy query that its function returns', async () => {
    const { receiver, written, send, idle, reports } = await subject({ open, options: { retry: { attempts: 1 } } })
    let calls = 0
    const lazyQuery = (client: SqliteDatabase) => ({
      then(resolve: () => void) {
        calls++
        insert(client, 'late')
        resolve()
      },
    })
    receiver.onAny((_, { transaction }) => transaction(untyped(lazyQuery)))
    await send('m1')
    await idle()
    await pause(5)
    expect([calls, written()]).toEqual([0, []])
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { code: 'invalid_transaction' } }])
  })

  test.each([
    'COMMIT',
    'end',
    'ROLLBACK',
    '/* now */ Rollback Transaction',
    "SELECT ';'; -- first\n COMMIT; BEGIN",
    'ROLLBACK TO inbox_handler',
    'RELEASE "inbox_handler"',
  ])('cannot end with %s, even if its function goes on', async (sql) => {
    const { receiver, written, send, idle } = await subject({ open })
    const errors: unknown[] = []
    receiver.onAny((event, { transaction }) =>
      transaction((client) => {
        for (const run of [() => client.exec(sql), () => client.prepare(sql).run()])
          try {
            run()
          } catch (error) {
            errors.push(error)
          }
        insert(client, event.mediaId)
      }),
    )
    await send('m1')
    await idle()
    expect(errors).toEqual(
      Array(2).fill(withMessage(/must not (end the transaction that it runs in|use the savepoint)/)),
    )
    expect(written()).toEqual(['m1'])
  })

  test('can have savepoints, triggers, and texts that look like SQL', async () => {
    const { receiver, written, send, idle, outcomes } = await subject({ open })
    receiver.onAny(
      (_, { transaction }) =>
        transaction((client) => {
          client.exec('CREATE TRIGGER echo AFTER INSERT ON media BEGIN INSERT INTO written VALUES (new.id, NULL); END')
          client.exec('SAVEPOINT mine')
          insert(client, 'undone')
          client.exec('ROLLBACK TO mine; RELEASE mine')
          client.exec("INSERT INTO media VALUES ('; COMMIT')")
          client.prepare('INSERT INTO media VALUES (?)').run('commit')
        }),
      { name: 'h' },
    )
    await send('m1')
    await idle()
    expect([written(), outcomes()]).toEqual([['; COMMIT', 'commit'], ['h 1 handled']])
  })

  test("makes savepoints of its function's transactions, however they are written", async () => {
    const { receiver, written, send, idle, outcomes } = await subject({ open })
    receiver.onAny(
      (_, { transaction }) =>
        transaction((client) => {
          const [begin, commit, rollback] = ['BEGIN IMMEDIATE', 'commit;', 'ROLLBACK'].map((sql) => client.prepare(sql))
          for (const end of [commit, rollback, commit]) {
            begin?.run()
            insert(client, end === commit ? 'kept' : 'lost')
            end?.run()
          }
          client.exec("BEGIN; INSERT INTO written VALUES ('also kept', NULL); COMMIT")
        }),
      { name: 'h' },
    )
    await send('m1')
    await idle()
    expect([written(), outcomes()]).toEqual([['kept', 'kept', 'also kept'], ['h 1 handled']])
  })

  test('that SQLite rolls back commits nothing that its function goes on to write', async () => {
    const { receiver, written, send, idle, reports } = await subject({ open, options: { retry: { attempts: 2 } } })
    receiver.onAny(
      (event, { transaction }) =>
        transaction((client) => {
          insert(client, `${event.mediaId} first`)
          if (event.mediaId !== 'bad') return
          client.prepare('INSERT INTO media VALUES (?)').run('same')
          for (const content of ['conflict', 'second', 'third'])
            try {
              if (content === 'conflict') client.exec("INSERT OR ROLLBACK INTO media VALUES ('same')")
              else insert(client, content)
            } catch {
              // As a handler that takes a conflict for an answer.
            }
        }),
      { name: 'h' },
    )
    await send('m1', 'bad', 'm2')
    await idle()
    expect(written().sort()).toEqual(['m1 first', 'm2 first'])
    expect(reports.filter(({ mediaId }) => mediaId === 'bad')).toMatchObject([
      { outcome: 'retried', error: withMessage(/UNIQUE/) },
      { outcome: 'dead-lettered' },
    ])
  })

  test('closes the iterators that its function leaves open', async () => {
    const { path, receiver, send, idle, outcomes } = await subject({ open })
    const rows: Iterator<unknown>[] = []
    receiver.onAny(
      (_, { transaction }) =>
        transaction((client) => {
          client.exec("INSERT INTO media VALUES ('a'), ('b'), ('c')")
          const statement = client.prepare('SELECT id FROM media') as unknown as {
            iterate(): IterableIterator<{ id: string }>
          }
          for (const { id } of statement.iterate()) if (id === 'b') break
          const left = statement.iterate()
          expect(left.next().value).toMatchObject({ id: 'a' })
          rows.push(left)
        }),
      { name: 'h' },
    )
    await send('m1')
    await idle()
    // Of the same library: two of them in one process end each other's locks.
    const other = (open ?? openDatabase)(path)
    other.exec('DELETE FROM media')
    other.close()
    expect(await send('m2')).toEqual([200])
    await idle()
    expect(outcomes()).toEqual(['h 1 handled', 'h 1 handled'])
    expect(() => rows[0]?.next()).toThrow(/after the transaction ended/)
  })

  test('does not close the database', async () => {
    const { receiver, send, idle, reports } = await subject({ open, options: { retry: { attempts: 1 } } })
    receiver.onAny((_, { transaction }) => transaction((client) => void client.close()))
    await send('m1')
    await idle()
    expect(reports).toMatchObject([{ error: withMessage(/must not close/) }])
    expect(await send('m2')).toEqual([200])
  })

  test('takes statements that an earlier transaction has prepared', async () => {
    const { receiver, written, send, idle } = await subject({ open })
    let statement: SqliteStatement | undefined
    receiver.onAny((event, { transaction }) =>
      transaction((client) => {
        statement ??= client.prepare('INSERT INTO written VALUES (?, NULL)')
        statement.run(event.mediaId)
      }),
    )
    await send('m1')
    await idle()
    await send('m2')
    await idle()
    expect(written()).toEqual(['m1', 'm2'])
  })

  test('is in the file with the record of its handler, for the process after a crash', async () => {
    const { path, receiver, written, send } = await subject({ open })
    const { promise: reached, resolve: reach } = signalled()
    receiver.onAny((event, { transaction }) => transaction((client) => insert(client, event.mediaId)), {
      name: 'writes',
    })
    receiver.onAny(
      () => {
        reach()
        return new Promise(() => {})
      },
      { name: 'hangs' },
    )
    await send('m1')
    await reached
    const { calls } = started({ path: await crashed(path) })
    expect((await calls.next()).attempt.completed).toEqual(['writes'])
    expect(written()).toEqual(['m1'])
  })
})

test('a transaction runs the queries of Drizzle', async () => {
  // The driver for better-sqlite3, which imports that package.
  const drizzle = (client: SqliteDatabase) => {
    const dialect = new SQLiteSyncDialect()
    return new BaseSQLiteDatabase(
      'sync',
      dialect,
      new BetterSQLiteSession(client as never, dialect, undefined),
      undefined,
    )
  }
  const { receiver, written, send, idle, outcomes } = await subject({ open: drivers.libsql })
  const found: unknown[] = []
  receiver.onAny(
    (event, { transaction }) =>
      transaction((client) => {
        const orm = drizzle(client)
        orm.insert(writtenTable).values({ content: event.mediaId }).run()
        orm.transaction((nested) => nested.insert(writtenTable).values({ content: 'nested' }).run())
        const undo = () =>
          orm.transaction((nested) => {
            nested.insert(writtenTable).values({ content: 'undone' }).run()
            nested.rollback()
          })
        expect(undo).toThrow(/Rollback/)
        found.push(...orm.select().from(writtenTable).all())
      }),
    { name: 'h' },
  )
  await send('m1')
  await idle()
  expect([found, written(), outcomes()]).toEqual([
    [{ content: 'm1' }, { content: 'nested' }],
    ['m1', 'nested'],
    ['h 1 handled'],
  ])
})

/** Makes a receiver whose first transactions have a commit that goes wrong, or all commits `until` a time. */
async function withFailingCommit(
  fail: (commit: () => unknown) => unknown,
  mediaIds = ['m1'],
  until = (over: () => void): unknown => over(),
) {
  let runs = 0
  let hasFailed = false
  const failing = (database: SqliteDatabase): SqliteDatabase => ({
    exec(sql) {
      if (sql !== 'COMMIT' || runs === 0 || hasFailed) return database.exec(sql)
      until(() => {
        hasFailed = true
      })
      return fail(() => database.exec(sql))
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  })
  const { receiver, ...rest } = await subject({ wrap: failing })
  receiver.onAny(
    (event, { transaction }) =>
      transaction((client) => {
        runs++
        insert(client, event.mediaId)
      }),
    { name: 'writes' },
  )
  receiver.onAny((_event, { attempt }) => attempt === 1 && Promise.reject(new Error('unlucky')), { name: 'fails once' })
  await rest.send(...mediaIds)
  await rest.idle()
  return { ...rest, runs: () => runs }
}

const fail = (message: string, code?: string): never => {
  throw Object.assign(new Error(message), { code })
}

describe('a transaction whose commit fails', () => {
  test('runs again by itself when another connection holds the lock', async () => {
    const { runs, written, outcomes } = await withFailingCommit(() => fail('database is locked', 'SQLITE_BUSY'))
    expect([runs(), written()]).toEqual([2, ['m1']])
    expect(outcomes()).toEqual(['writes 1 handled', 'fails once 1 retried', 'fails once 2 handled'])
  })

  test('fails its handler, which runs again', async () => {
    // Beside other writes, it is committed again by itself in the same turn.
    const subject = await withFailingCommit(() => fail('disk I/O error'), ['m1'], setImmediate)
    const { written, outcomes, reports } = subject
    expect(written()).toEqual(['m1'])
    expect(outcomes()).toEqual(['writes 1 retried', 'fails once 1 retried', 'writes 2 handled', 'fails once 2 handled'])
    expect(reports[0]?.error).toMatchObject({
      code: 'unavailable',
      message: 'the transaction was not committed: disk I/O error',
      cause: expect.objectContaining({ message: 'disk I/O error' }),
    })
  })

  test('does not run again when it was committed anyway', async () => {
    const { runs, written, outcomes } = await withFailingCommit((commit) => {
      commit()
      fail('the answer was lost')
    })
    expect([runs(), written()]).toEqual([1, ['m1']])
    expect(outcomes()).toEqual(['writes 1 handled', 'fails once 1 retried', 'fails once 2 handled'])
  })
})

describe('transactions in one commit that fails', () => {
  test('run again, each in a commit of its own', async () => {
    const { runs, written } = await withFailingCommit(() => fail('disk I/O error'), ['m1', 'm2', 'm3'])
    expect([runs(), written().sort()]).toEqual([6, ['m1', 'm2', 'm3']])
  })

  test('do not run again when it was committed anyway', async () => {
    const lost = (commit: () => unknown) => {
      commit()
      fail('the answer was lost')
    }
    const { runs, written, outcomes } = await withFailingCommit(lost, ['m1', 'm2', 'm3'])
    expect([runs(), written().sort()]).toEqual([3, ['m1', 'm2', 'm3']])
    expect(outcomes().filter((outcome) => outcome.startsWith('writes'))).toEqual(Array(3).fill('writes 1 handled'))
  })
})

describe('a transaction', () => {
  test('is rolled back when its handler takes too long while another connection holds the lock', async () => {
    const { path, receiver, written, send, idle, outcomes } = await subject({
      options: { handlerTimeoutMs: 50, retry: { attempts: 2, baseMs: 1 } },
    })
    const other = openDatabase(path)
    onTestFinished(() => void other.close())
    receiver.onAny(
      (event, { transaction, attempt }) => {
        if (attempt === 1) other.exec('BEGIN IMMEDIATE')
        if (attempt === 1) setTimeout(() => other.exec('COMMIT'), 150)
        return transaction((client) => insert(client, `${event.mediaId} ${attempt}`))
      },
      { name: 'h' },
    )
    await send('m1')
    await idle()
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 handled'])
    expect(written()).toEqual(['m1 2'])
  })

  test('is rejected with lease_lost when another process has taken over the file', async () => {
    const { path, receiver, written, send, reports } = await subject()
    receiver.onAny(
      async (event, { transaction }) => {
        const thief = openDatabase(path)
        thief.exec("UPDATE inbox_owner SET token = 'another process'")
        thief.close()
        await transaction((client) => insert(client, event.mediaId))
      },
      { name: 'h' },
    )
    await send('m1')
    await until(async () => reports.length === 1)
    expect(reports).toMatchObject([{ outcome: 'stopped', error: { code: 'lease_lost' } }])
    expect(written()).toEqual([])
  })

  test('is rolled back when the inbox closes before its commit', async () => {
    const { receiver, written, send, reports } = await subject()
    const { promise: running, resolve: run } = signalled()
    const { promise: closing, resolve: close } = signalled()
    receiver.onAny(
      async (event, { transaction }) => {
        run()
        await closing
        await transaction((client) => insert(client, event.mediaId))
      },
      { name: 'h' },
    )
    await send('m1')
    await running
    const closed = receiver.close({ timeoutMs: 5 })
    await pause(20)
    close()
    expect((await closed).unfinished).toHaveLength(1)
    await until(async () => reports.length === 1)
    expect(reports).toMatchObject([{ outcome: 'stopped', error: { code: 'closing' } }])
    expect(written()).toEqual([])
  })
})
