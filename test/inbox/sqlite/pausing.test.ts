import { existsSync, readFileSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type InboxFile, openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { pausing } from '../pausing.suite.ts'
import { startProgram } from './processes/start.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

pausing(async (options) => receiverOver({ path: await freshPath() }, options))

/** Opens the file of an inbox to read it, until the end of the test. */
function opened(path: string): InboxFile {
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  return file
}

test('the process that has the inbox open obeys another process, within a second', async () => {
  const path = await freshPath()
  const { inbox, calls, lines } = started({ path })
  const { pauses } = opened(path)
  expect(await pauses.pause({ by: 'ana' })).toBe(true)
  await until(async () => lines.includes('the inbox is paused until an operator resumes it'))
  expect(await inbox.pauses?.list()).toEqual(await pauses.list())
  await inbox.accept(eventOf('one'))
  await sleep(100)
  expect(await inbox.stats()).toMatchObject({ waiting: 1, running: 0 })
  const resumedAt = performance.now()
  expect(await pauses.resume()).toBe(true)
  expect((await calls.next()).event.key).toBe('one')
  expect(performance.now() - resumedAt).toBeLessThan(1_000)
  expect(lines).toContain('the inbox was resumed')
})

test('a crash does not end a pause, not even that of a process that is killed', async () => {
  const path = await freshPath()
  const { inbox } = started({ path })
  await inbox.pauses?.pause({ by: 'ana' })
  for (const key of ['one', 'two']) await inbox.accept(eventOf(key, 'media'))
  const copy = await crashed(path)
  const notes = () => (existsSync(`${copy}-notes`) ? readFileSync(`${copy}-notes`, 'utf8').split('\n').length - 1 : 0)
  const program = [copy, `${copy}-notes`, 0] as const
  for (let lives = 0; lives < 2; lives++) {
    const { kill } = await startProgram('crashing', program)
    await sleep(300)
    await kill()
  }
  const file = opened(copy)
  expect(await file.pauses.list()).toMatchObject([{ by: 'ana' }])
  expect([notes(), file.stats().waiting]).toEqual([0, 2])
  await startProgram('crashing', program)
  expect(notes()).toBe(0)
  await file.pauses.resume()
  await until(async () => notes() === 2)
})

test('an event that waits for its turn after crashes obeys a pause that comes before it', async () => {
  const path = await freshPath()
  const earlier = started({ path })
  for (const key of ['one', 'two']) await earlier.inbox.accept(eventOf(key))
  for (let i = 0; i < 2; i++) await earlier.calls.next()
  const { inbox, calls } = started({ path: await crashed(path) })
  // One of them may have made that process crash, so they run one after another.
  const first = await calls.next()
  await inbox.pauses?.pause()
  first.finish()
  await until(async () => (await inbox.stats()).running === 0)
  await sleep(100)
  expect([calls.hasStarted, (await inbox.stats()).waiting]).toEqual([false, 1])
  await inbox.pauses?.resume()
  expect((await calls.next()).attempt.number).toBe(1)
})

test('a pause that cannot be read is obeyed as soon as it can', async () => {
  const path = await freshPath()
  const { database, failing } = watched(path)
  const { inbox, lines } = started({ database })
  await nextTurn()
  failing.sql = /FROM inbox_pause/
  await opened(path).pauses.pause({ handler: 'a' })
  await until(async () => lines.includes('the inbox could not do its background work'))
  failing.sql = nothing
  await until(async () => lines.includes('the handler a is paused until an operator resumes it'))
  await inbox.close()
})

test('nothing starts before the pauses are read, which is tried until they can be', async () => {
  const { database, failing } = watched(await freshPath())
  failing.sql = /FROM inbox_pause/
  const { inbox, calls, lines } = started({ database })
  await inbox.accept(eventOf('one'))
  await sleep(1_200)
  expect(calls.hasStarted).toBe(false)
  expect(lines.filter((line) => line === 'the inbox could not start, and tries again')).toHaveLength(1)
  failing.sql = nothing
  expect((await calls.next()).event.key).toBe('one')
})
