import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Pauses } from '../../../src/inbox/reading.ts'
import { type InboxFile, openInboxFile } from '../../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

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

test('a crash does not end a pause', async () => {
  const path = await freshPath()
  const crashing = started({ path })
  await crashing.inbox.pauses?.pause({ by: 'ana' })
  for (const key of ['one', 'two']) await crashing.inbox.accept(eventOf(key))
  const { inbox, calls } = started({ path: await crashed(path) })
  await sleep(100)
  expect([calls.hasStarted, (await inbox.stats()).waiting]).toEqual([false, 2])
  expect(await inbox.pauses?.list()).toMatchObject([{ by: 'ana' }])
  await inbox.pauses?.resume()
  for (let index = 0; index < 2; index++) (await calls.next()).finish()
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

test('a paused handler, also of an expectation, is left out while the others run, and runs once it is resumed', async () => {
  const receiver = receiverOver({ path: await freshPath() })
  const runs: string[] = []
  for (const name of ['a', 'b']) receiver.on('encoding.finished', () => void runs.push(name), { name })
  const rule = { then: 'encoding.failed', within: 1, name: 'late' } as const
  receiver.expect('encoding.finished', rule, () => void runs.push('late'))
  const pauses = receiver.inbox.pauses as Pauses
  for (const handler of ['a', 'late']) await pauses.pause({ handler })
  await deliver(receiver, samplePayload('encoding.finished'))
  await until(async () => (await receiver.inbox.stats()).retrying === 2)
  expect(runs).toEqual(['b'])
  for (const handler of ['a', 'late']) await pauses.resume({ handler })
  await until(async () => runs.length === 3)
  expect(runs.toSorted()).toEqual(['a', 'b', 'late'])
})
