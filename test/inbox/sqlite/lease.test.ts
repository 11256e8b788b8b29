import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { FileLease } from '../../../src/inbox/sqlite/lease.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { crashed, freshPath, started } from './sqlite-tests.ts'

interface Owner {
  readonly token: string
  readonly pid: number
  readonly crashes: number
  readonly alone: number | null
}

/** Looks into the table of the process that owns the file. */
function ownersIn(path: string) {
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  return {
    database,
    owners: () => database.prepare('SELECT * FROM inbox_owner').all() as Owner[],
  }
}

describe('the owner of a file', () => {
  test('is the process that has it open, and none once it is closed', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    const { owners } = ownersIn(path)
    expect(owners()).toMatchObject([{ pid: process.pid, crashes: 0, alone: null }])
    await inbox.close()
    expect(owners()).toEqual([])
  })

  test('counts the crashes in a row, and forgets them once each suspect has been handled', async () => {
    const path = await freshPath()
    const first = started({ path })
    await first.inbox.accept(eventOf('one'))
    const second = await crashed(path)
    started({ path: second })
    const third = await crashed(second)
    const { inbox, calls } = started({ path: third })
    const { owners } = ownersIn(third)
    const call = await calls.next()
    expect(owners()).toMatchObject([{ crashes: 2, alone: 1 }])
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    await until(async () => owners()[0]?.crashes === 0)
    expect(owners()).toMatchObject([{ alone: null }])
  })

  test('does not forget the crashes while a suspect takes long, and lets the others start', async () => {
    const path = await freshPath()
    const first = started({ path, concurrency: 1 })
    await first.inbox.accept(eventOf('slow'))
    await first.inbox.accept(eventOf('other'))
    const copy = await crashed(path)
    const { calls } = started({ path: copy, concurrency: 2 })
    const { owners } = ownersIn(copy)
    const slow = await calls.next()
    expect(slow.event.key).toBe('slow')
    expect((await calls.next()).event.key).toBe('other')
    slow.finish()
    await pause(100)
    expect(owners()).toMatchObject([{ crashes: 1, alone: null }])
  })

  test('handles no waiting event any more when another process has taken over the file', async () => {
    const path = await freshPath()
    const { inbox, calls, lines } = started({ path, concurrency: 1 })
    await inbox.accept(eventOf('running'))
    await inbox.accept(eventOf('waiting'))
    const running = await calls.next()
    const { database } = ownersIn(path)
    database.exec("UPDATE inbox_owner SET token = 'another process'")
    // A check is good for 5 ms.
    await pause(20)
    running.finish()
    let hasBegun = false
    const begun = () => {
      hasBegun = true
    }
    calls.next().then(begun, () => {})
    await until(async () => lines.includes('the inbox has stopped: it has lost its file'))
    await pause(20)
    expect(hasBegun).toBe(false)
    expect(await inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    await expect(inbox.accept(eventOf('late'))).rejects.toMatchObject({ code: 'unavailable' })
    await expect(inbox.deadLetters.discard('one')).rejects.toMatchObject({ code: 'unavailable' })
    expect(lines.filter((line) => line.startsWith('the inbox has stopped'))).toHaveLength(1)
    expect(database.prepare('SELECT count(*) AS events FROM inbox_event').get()).toMatchObject({ events: 2 })
  })
})

describe('another process that has, or had, the file', () => {
  /** Takes over a file that a process has not closed. */
  async function takenOver(pid: number, crashes: number, alone: number | null = null) {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.accept(eventOf('one'))
    await inbox.close({ timeoutMs: 0 })
    const { database, owners } = ownersIn(path)
    const insert = database.prepare('INSERT INTO inbox_owner (token, pid, crashes, alone) VALUES (?, ?, ?, ?)')
    insert.run('another process', pid, crashes, alone)
    const owner = new FileLease(database, path)
    const starts = () => (database.prepare('SELECT starts FROM inbox_event').get() as { starts: number }).starts
    return { path, database, owner, owners, starts }
  }

  test('is counted as crashed, and its event that ran alone counts that', async () => {
    const { owner, owners, starts } = await takenOver(process.pid, 3, 1)
    expect(owner.predecessor).toEqual({ crashes: 4, mayBeAlive: false })
    expect(owners()).toMatchObject([{ pid: process.pid, crashes: 4, alone: null }])
    expect(starts()).toBe(1)
  })

  test('counts a crash for no event if none ran alone', async () => {
    const { starts } = await takenOver(process.pid, 3)
    expect(starts()).toBe(0)
  })

  test.each([
    ['lives', undefined, true],
    ['is of another user', 'EPERM', true],
    ['has ended', 'ESRCH', false],
  ])('may be alive: a process of that id %s', async (_, code, mayBeAlive) => {
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
      if (code !== undefined) throw Object.assign(new Error('no'), { code })
      return true
    })
    onTestFinished(() => kill.mockRestore())
    const { owner } = await takenOver(process.pid + 1, 0)
    expect(owner.predecessor).toEqual({ crashes: 1, mayBeAlive })
    expect(kill).toHaveBeenCalledWith(process.pid + 1, 0)
  })

  test('can take the file over, which is noticed after 5 ms, and is final', async () => {
    const { owner, database, path } = await takenOver(process.pid, 0)
    const other = ownersIn(path).database
    const { token } = database.prepare('SELECT token FROM inbox_owner').get() as { token: string }
    const give = (to: string) => other.prepare('UPDATE inbox_owner SET token = ?').run(to)
    let now = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => void vi.restoreAllMocks())
    owner.check()
    give('another process')
    now += 4
    expect(owner.confirm()).toBe(true)
    now += 1
    expect(owner.confirm()).toBe(false)
    expect(owner.isLost).toBe(true)
    give(token)
    now += 100
    expect(owner.confirm()).toBe(false)
    expect(() => owner.check()).toThrow(owner.lost)
  })

  test('is not looked for unless another process has written to the file', async () => {
    const { database, path } = await takenOver(process.pid, 0)
    let asked = 0
    const owner = new FileLease(
      {
        ...database,
        exec: (sql) => database.exec(sql),
        prepare(sql) {
          const statement = database.prepare(sql)
          if (!sql.includes('AS owns')) return statement
          const get = (...parameters: unknown[]) => {
            asked++
            return statement.get(...parameters)
          }
          return { run: (...all) => statement.run(...all), all: (...all) => statement.all(...all), get }
        },
        close() {},
      },
      path,
    )
    let now = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => void vi.restoreAllMocks())
    for (let i = 0; i < 5; i++) {
      now += 10
      expect(owner.confirm()).toBe(true)
    }
    expect(asked).toBe(1)
    expect(owner.lost.message).toContain(path)
  })
})
