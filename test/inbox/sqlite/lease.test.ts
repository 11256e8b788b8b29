import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { FileLease } from '../../../src/inbox/sqlite/lease.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

interface Owner {
  readonly token: string
  readonly pid: number
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
    expect(owners()).toMatchObject([{ pid: process.pid }])
    await inbox.close()
    expect(owners()).toEqual([])
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
    await until(async () => lines.includes('the inbox lost its file and has stopped'))
    await pause(20)
    expect(hasBegun).toBe(false)
    // The events wait in the file, for the other process.
    await expect(inbox.accept(eventOf('late'))).rejects.toMatchObject({ code: 'unavailable' })
    await expect(inbox.deadLetters.discard('one')).rejects.toMatchObject({ code: 'unavailable' })
    expect(lines.filter((line) => line.startsWith('the inbox lost its file'))).toHaveLength(1)
    expect(database.prepare('SELECT count(*) AS events FROM inbox_event').get()).toMatchObject({ events: 2 })
  })
})

describe('another process that has, or had, the file', () => {
  /** Takes over a file that a process has not closed. */
  async function takenOver(pid: number) {
    const path = await freshPath()
    await started({ path }).inbox.close()
    const { database, owners } = ownersIn(path)
    database.prepare('INSERT INTO inbox_owner (token, pid) VALUES (?, ?)').run('another process', pid)
    return { path, database, owners, owner: new FileLease(database, path) }
  }

  test('has crashed, and its row is replaced', async () => {
    const { owner, owners } = await takenOver(process.pid)
    expect(owner.holdMs).toBe(250)
    expect(owners()).toMatchObject([{ pid: process.pid }])
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
    const { owner } = await takenOver(process.pid + 1)
    expect(owner.holdMs).toBe(mayBeAlive ? 750 : 250)
    expect(kill).toHaveBeenCalledWith(process.pid + 1, 0)
  })

  test('can take the file over, which is noticed after 5 ms, and is final', async () => {
    const { owner, database, path } = await takenOver(process.pid)
    const other = ownersIn(path).database
    const { token } = database.prepare('SELECT token FROM inbox_owner').get() as { token: string }
    const give = (to: string) => other.prepare('UPDATE inbox_owner SET token = ?').run(to)
    let now = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => void vi.restoreAllMocks())
    owner.check()
    give('another process')
    now += 4
    expect(owner.findLoss()).toBe(undefined)
    now += 1
    const lost = owner.findLoss()
    expect(lost?.message).toContain(`another process has opened ${path}`)
    give(token)
    now += 100
    expect(owner.findLoss()).toBe(lost)
    expect(() => owner.check()).toThrow(lost)
  })

  test('is lost with its file, which is noticed after 5 ms', async () => {
    const { owner, path } = await takenOver(process.pid)
    let now = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => void vi.restoreAllMocks())
    owner.check()
    rmSync(path)
    now += 5
    expect(owner.findLoss()?.message).toContain('was deleted')
  })
})
