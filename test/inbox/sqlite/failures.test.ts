import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AttemptResult } from '../../../src/inbox/inbox.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile, type SqliteDatabase, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { signalled } from '../../support/signalled.ts'
import { silent } from '../../support/silent.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

/** Opens a database whose disk can be made full: SQLite then fails as it does on a full disk. */
async function smallDisk() {
  const path = await freshPath()
  const database = openDatabase(path)
  return {
    path,
    database,
    // SQLite raises the limit to the pages in use.
    fill: () => database.exec('PRAGMA max_page_count = 1'),
    makeRoom: () => database.exec('PRAGMA max_page_count = 1000000'),
  }
}

const payloadOf = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

describe('on a full disk', () => {
  test('deliveries are answered 503 until there is room, and are accepted when they arrive again', async () => {
    const disk = await smallDisk()
    const receiver = receiverOver({ database: disk.database })
    const handled: string[] = []
    receiver.onAny(({ mediaId }) => void handled.push(mediaId))
    expect((await deliver(receiver, payloadOf('before'))).status).toBe(200)
    await until(async () => handled.length === 1)
    disk.fill()
    const answers: [string, number][] = []
    for (let i = 0; i < 200; i++) answers.push([`${i}`, (await deliver(receiver, payloadOf(`${i}`))).status])
    const rejected = answers.filter(([, status]) => status === 503).map(([mediaId]) => mediaId)
    expect(rejected.length).toBeGreaterThan(0)
    disk.makeRoom()
    for (const mediaId of rejected) {
      expect(await deliver(receiver, payloadOf(mediaId))).toMatchObject({ outcome: 'accepted' })
    }
    await until(async () => handled.length === 201)
    expect(new Set(handled).size).toBe(201)
  })

  test('no event of a failed commit is accepted, and none of them is in the file', async () => {
    const disk = await smallDisk()
    const { inbox } = started({ database: disk.database })
    disk.fill()
    const keys = Array.from({ length: 500 }, (_, i) => `key ${i}`)
    const results = await Promise.allSettled(keys.map(async (key) => inbox.accept(eventOf(key))))
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['rejected']))
    disk.makeRoom()
    expect(await inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    for (const key of keys) expect(await inbox.accept(eventOf(key))).toBe('accepted')
  })
})

describe('a failure of the storage in a transaction does not count as an attempt of its handler', () => {
  const table = 'CREATE TABLE written (content TEXT)'
  const write = (database: SqliteDatabase, content = 'x') =>
    void database.prepare('INSERT INTO written VALUES (?)').run(content)

  /** Makes a receiver whose handler writes `run`, and that waits with it until it is let go. */
  function writing(database: SqliteDatabase, run: (database: SqliteDatabase) => void) {
    const attempts: number[] = []
    const go = signalled()
    const receiver = createReceiver({
      verify: unverified(),
      logger: silent,
      retry: { attempts: 2, baseMs: 5 },
      inbox: sqliteInbox({ database }),
    })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    receiver.onAny(async (_, { attempt, transaction }) => {
      await go.promise
      attempts.push(attempt)
      await transaction(run)
    })
    const count = () => database.prepare('SELECT content FROM written').all().length
    return { receiver, attempts, go, count }
  }

  test.each(['in a statement of the handler', 'in a statement that the handler wraps'])(
    'a full disk, met %s',
    async (how) => {
      const disk = await smallDisk()
      disk.database.exec(table)
      const { receiver, attempts, go, count } = writing(disk.database, (database) => {
        try {
          write(database, 'x'.repeat(100_000))
        } catch (cause) {
          throw how.endsWith('wraps') ? new Error('query failed', { cause }) : cause
        }
      })
      for (let i = 0; i < 10; i++) expect((await deliver(receiver, payloadOf(`${i}`))).status).toBe(200)
      disk.fill()
      go.resolve()
      await until(async () => attempts.length >= 10)
      await pause(300)
      expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
      disk.makeRoom()
      await until(async () => count() === 10)
      expect(new Set(attempts)).toEqual(new Set([1]))
    },
  )

  test.each([
    ['a disk that cannot be written', { code: 'SQLITE_IOERR_WRITE' }],
    ['the same as node:sqlite says it', { errcode: 778 }],
  ])('%s', async (_, details) => {
    const { database } = await smallDisk()
    database.exec(table)
    let fails = false
    const exec = (sql: string) => {
      if (fails && sql === 'COMMIT') throw Object.assign(new Error('disk I/O error'), details)
      return database.exec(sql)
    }
    const failing = { exec, prepare: (sql: string) => database.prepare(sql), close: () => database.close() }
    const { receiver, attempts, go, count } = writing(failing, write)
    expect((await deliver(receiver, payloadOf('one'))).status).toBe(200)
    await until(async () => (await receiver.inbox.stats()).running === 1)
    fails = true
    go.resolve()
    await until(async () => attempts.length > 0)
    await pause(300)
    fails = false
    await until(async () => count() === 1)
    expect(new Set(attempts)).toEqual(new Set([1]))
  })

  test.each([
    [
      'an error of the handler',
      () => {
        throw new Error('no')
      },
    ],
    [
      'no error at all',
      () => {
        throw undefined
      },
    ],
    ['a transaction that the handler ends', (database: SqliteDatabase) => void database.exec('ROLLBACK')],
  ])('but %s is', async (_, run) => {
    const { database } = await smallDisk()
    const { receiver, attempts, go } = writing(database, run)
    expect((await deliver(receiver, payloadOf('one'))).status).toBe(200)
    go.resolve()
    await until(async () => (await receiver.inbox.stats()).deadLetters === 1)
    expect(attempts).toEqual([1, 2])
  })
})

/** Writes in another connection for longer than the inbox waits. */
function blocked(path: string) {
  const other = openDatabase(path)
  other.exec('BEGIN IMMEDIATE')
  return {
    free() {
      other.exec('COMMIT')
      other.close()
    },
  }
}

test('a retry that could not be recorded is recorded as soon as it can be', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  const blocker = blocked(path)
  call.finish({ status: 'retry', delayMs: 60_000, completed: ['a'], failures: [] })
  // The first try gives up.
  await pause(2_500)
  expect(await inbox.stats()).toMatchObject({ running: 1, retrying: 0 })
  blocker.free()
  const file = openInboxFile(path)
  await until(async () => file.stats().retrying === 1)
  file.close()
})

/** Opens an inbox that has an event of whose commit it was told that it had failed. */
async function withSecretEvent() {
  const database = openDatabase(await freshPath())
  let isLost = false
  const exec = (sql: string) => {
    database.exec(sql)
    if (isLost && sql === 'COMMIT') throw new Error('disk I/O error')
  }
  const prepare = (sql: string) => database.prepare(sql)
  const opened = started({ database: { exec, prepare, close: () => database.close() } })
  isLost = true
  await expect(opened.inbox.accept(eventOf('one'))).rejects.toMatchObject({
    code: 'unavailable',
    cause: { message: 'disk I/O error' },
  })
  isLost = false
  expect(await opened.inbox.accept(eventOf('one'))).toBe('duplicate')
  return opened
}

test('an event whose commit seemed to fail and succeeded is unfinished if the inbox closes now', async () => {
  const { inbox } = await withSecretEvent()
  const { unfinished } = await inbox.close()
  expect(unfinished).toMatchObject([{ event: { key: 'one' }, state: 'waiting' }])
})

test('an event is handled once if its commit seemed to fail and succeeded', async () => {
  const { inbox, calls } = await withSecretEvent()
  expect((await calls.next()).event.key).toBe('one')
  expect(await inbox.accept(eventOf('two'))).toBe('accepted')
  expect((await calls.next()).event.key).toBe('two')
})

test('a claim whose commit seemed to fail gives its lanes back, also after the next claim has failed too', async () => {
  const database = openDatabase(await freshPath())
  const faults: ('answer lost' | 'not committed')[] = []
  const exec = (sql: string) => {
    const fault = sql === 'COMMIT' ? faults.shift() : undefined
    if (fault !== 'not committed') database.exec(sql)
    if (fault !== undefined) throw new Error('disk I/O error')
  }
  const prepare = (sql: string) => database.prepare(sql)
  const { inbox, calls } = started({ database: { exec, prepare, close: () => database.close() } })
  await inbox.accept(eventOf('one'))
  const first = await calls.next()
  first.finish({ status: 'retry', delayMs: 200, completed: [], failures: [] })
  await until(async () => (await inbox.stats()).retrying === 1)
  // The next commit is that of the claim for the retry.
  faults.push('answer lost', 'not committed')
  expect((await calls.next()).attempt.number).toBe(2)
  expect(faults).toEqual([])
})

describe('when the end of an event cannot be recorded', () => {
  const unrecorded = 'the inbox closed before it could record the end of these events; their handlers may run again'

  /** Opens an inbox in which an event has ended, while the end cannot be recorded until `blocker` frees the file. */
  async function unrecordable(result?: AttemptResult) {
    const path = await freshPath()
    const opened = started({ path })
    await opened.inbox.accept(eventOf('one'))
    const call = await opened.calls.next()
    const blocker = blocked(path)
    call.finish(result)
    return { ...opened, path, blocker }
  }

  test.each<[string, AttemptResult]>([
    ['handled', { status: 'done' }],
    ['a dead letter', { status: 'dead', completed: [], failures: [] }],
  ])('before the inbox has closed, an event that is %s is unfinished, and is handled again', async (_, result) => {
    const { path, blocker, inbox, logged } = await unrecordable(result)
    const { unfinished } = await inbox.close({ timeoutMs: 0 })
    expect(unfinished).toEqual([{ ...eventOf('one'), receivedAt: expect.any(Date), state: 'running' }])
    expect(logged.filter(({ message }) => message === unrecorded)).toEqual([
      { message: unrecorded, details: { keys: ['one'] } },
    ])
    // The last write gives up.
    await pause(2_000)
    blocker.free()
    expect((await started({ path }).calls.next()).event.key).toBe('one')
  })

  test('and is recorded while the inbox closes, the event is not unfinished', async () => {
    const { blocker, inbox, lines } = await unrecordable()
    const closed = inbox.close({ timeoutMs: 0 })
    await nextTurn()
    blocker.free()
    expect(await closed).toEqual({ unfinished: [] })
    expect(lines).not.toContain(unrecorded)
  })

  test('it is not handled again, and its end is recorded as soon as it can be', async () => {
    const { path, blocker, inbox } = await unrecordable()
    await until(async () => (await inbox.stats()).running === 1)
    await expect(inbox.accept(eventOf('two'))).rejects.toMatchObject({
      code: 'unavailable',
      cause: { message: expect.stringMatching(/locked|busy/) },
    })
    blocker.free()
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    await until(async () => (await inbox.stats()).running === 0)
    const next = started({ path: await crashed(path) })
    expect(await next.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    expect(await next.inbox.accept(eventOf('one'))).toBe('duplicate')
  })
})

test.each<[string, AttemptResult]>([
  ['handled', { status: 'done' }],
  ['to be retried', { status: 'retry', delayMs: 600_000, completed: [], failures: [] }],
  ['dead letters', { status: 'dead', completed: [], failures: [] }],
])(
  'while the file cannot be written nothing starts once 64 events are %s without a record, and no line is repeated',
  async (_, result) => {
    const { database, failing } = watched(await freshPath())
    const { inbox, calls, lines } = started({ database, concurrency: 16 })
    for (let i = 0; i < 300; i++) await inbox.accept(eventOf(`key ${i}`))
    const first = await calls.next()
    failing.sql = /^BEGIN/
    first.finish(result)
    const ran: string[] = []
    let open = true
    const runAll = async () => {
      while (open) {
        const call = await calls.next()
        ran.push(call.event.key)
        call.finish(result)
      }
    }
    runAll().catch(() => {})
    // Lanes that are not held yet can't be claimed either.
    await until(async () => ran.length >= 16)
    // Failed records are written again after a second.
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    expect(ran.length).toBeLessThan(64 + 16)
    expect([...new Set(lines.filter((line) => line.startsWith('the inbox could not')))].sort()).toEqual([
      'the inbox could not claim events',
      'the inbox could not do its background work',
      'the inbox could not record the result of an event',
    ])
    failing.sql = nothing
    await until(async () => ran.length === 299)
    open = false
    expect(new Set(ran).size).toBe(299)
  },
)

test('an attempt that failed is held until that is recorded, once, and the next one comes after it', async () => {
  const { database, failing, ran } = watched(await freshPath())
  const { inbox, calls, lines } = started({ database })
  await inbox.accept(eventOf('one'))
  const first = await calls.next()
  failing.sql = /^UPDATE inbox_event SET attempts/
  first.finish({ status: 'retry', delayMs: 5, completed: ['a'], failures: [] })
  await until(async () => ran.filter((sql) => failing.sql.test(sql)).length > 2)
  expect(calls.hasStarted).toBe(false)
  expect(await inbox.events?.get('one')).toMatchObject({ state: 'running', attempts: 1 })
  failing.sql = nothing
  expect((await calls.next()).attempt).toMatchObject({ number: 2, completed: ['a'] })
  expect(lines).toEqual(['the inbox could not record the result of an event'])
})

/** Opens an inbox over a database, and keeps what it logs as errors. */
function logging(database: SqliteDatabase) {
  const errors: { readonly message: string; readonly details: object }[] = []
  const error = (details: object, message: string) => void errors.push({ message, details })
  const { inbox, calls } = openInbox(sqliteInbox({ database }), { ...silent, error })
  onTestFinished(async () => {
    calls.finishAll()
    await inbox.close({ timeoutMs: 1_000 })
  })
  return { inbox, calls, errors }
}

const failed = expect.objectContaining({ message: 'disk I/O error' })

test('the next handler waits while it cannot be recorded that one has succeeded, which is logged once', async () => {
  const { database, failing } = watched(await freshPath())
  const { inbox, calls, errors } = logging(database)
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  failing.sql = /^UPDATE inbox_event SET completed/
  let isRecorded = false
  const recorded = Promise.resolve(call.attempt.succeeded?.('first')).then(() => {
    isRecorded = true
  })
  await pause(500)
  expect(isRecorded).toBe(false)
  failing.sql = nothing
  await recorded
  const details = { lanes: 1, err: failed }
  expect(errors).toEqual([{ message: 'the inbox could not record the result of an event', details }])
})

test('after a crash an event starts only once it is recorded that it may be the cause', async () => {
  const path = await freshPath()
  const { inbox, calls: before } = started({ path })
  await inbox.accept(eventOf('one'))
  await before.next()
  const { database, failing, ran } = watched(await crashed(path))
  failing.sql = /^UPDATE inbox_event SET crashes/
  const { calls } = logging(database)
  await until(async () => ran.filter((sql) => failing.sql.test(sql)).length > 1)
  expect(calls.hasStarted).toBe(false)
  failing.sql = nothing
  expect((await calls.next()).event.key).toBe('one')
})
