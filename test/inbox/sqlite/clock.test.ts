import { expect, test, vi } from 'vitest'
import { eventOf, until } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { crashed, freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const month = 30 * 24 * 3_600_000

/** Runs a function by a clock that is off. */
async function byClock<T>(offMs: number, run: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs })
  try {
    return await run()
  } finally {
    vi.useRealTimers()
  }
}

/** Makes a file whose event was to be retried after `delayMs`, by a process whose clock was off. */
async function fileOfClock(offMs: number, delayMs: number): Promise<string> {
  return byClock(offMs, async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('retried'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs, completed: [], failures: [] })
    // Its retry is on disk once a later event is.
    await inbox.accept(eventOf('later'))
    return crashed(path)
  })
}

test.each([
  ['ahead', month],
  ['behind', -month],
])('a retry that was recorded by a clock that was a month %s waits no longer than it was to', async (_, offMs) => {
  const { calls } = started({ path: await fileOfClock(offMs, 300) })
  const elapsed = ownTime()
  const keys: string[] = []
  for (let i = 0; i < 2; i++) {
    const call = await calls.next()
    keys.push(call.event.key)
    call.finish()
  }
  expect(keys.sort()).toEqual(['later', 'retried'])
  expect(elapsed()).toBeLessThan(1_500)
})

test('a retry that was recorded by a clock that was a month ahead waits as long as it was to', async () => {
  const { inbox, calls } = started({ path: await fileOfClock(month, 60_000) })
  expect((await calls.next()).event.key).toBe('later')
  expect(await inbox.stats()).toMatchObject({ retrying: 1 })
})

test('a retry that was recorded by a clock that was a month ahead makes no more than ten processes crash', async () => {
  let path = await fileOfClock(month, 5)
  const first = started({ path })
  for (let i = 0; i < 2; i++) {
    const call = await first.calls.next()
    if (call.event.key === 'later') call.finish()
  }
  await until(async () => (await first.inbox.stats()).running === 1)
  let crashes = 0
  for (let isDead = false; !isDead; ) {
    path = await crashed(path)
    crashes++
    const { inbox, calls } = started({ path })
    const hasDied = async () => (await inbox.stats()).deadLetters === 1
    await until(async () => calls.hasStarted || (await hasDied()))
    isDead = await hasDied()
  }
  expect(crashes).toBeGreaterThan(8)
  expect(crashes).toBeLessThanOrEqual(10)
})

test('a lane that was left while the clock was a month ahead does not wait, although a retry in it was timed before', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('retried', 'media'))
  await inbox.accept(eventOf('second', 'media'))
  const call = await calls.next()
  call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
  expect((await calls.next()).event.key).toBe('second')
  await byClock(month, async () => {
    await inbox.close({ timeoutMs: 1 })
  })
  expect((await started({ path }).calls.next()).event.key).toBe('second')
})

test('a retry recorded while the clock was a month ahead runs in the same process, although nothing else arrives', async () => {
  const { inbox, calls } = started({ path: await freshPath() })
  await inbox.accept(eventOf('before'))
  ;(await calls.next()).finish()
  await byClock(month, async () => {
    await inbox.accept(eventOf('retried'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 100, completed: [], failures: [] })
    await until(async () => (await inbox.stats()).retrying === 1)
  })
  expect((await calls.next()).attempt.number).toBe(2)
})

test('a retry recorded while the clock was a month ahead runs, although the first correction could not be committed', async () => {
  const { database, failing, ran } = watched(await freshPath())
  const { inbox, calls } = started({ database })
  await byClock(month, async () => {
    await inbox.accept(eventOf('retried'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 100, completed: [], failures: [] })
    await until(async () => (await inbox.stats()).retrying === 1)
    ran.length = 0
    failing.sql = /^COMMIT/
  })
  await until(async () => {
    const corrected = ran.findIndex((sql) => sql.startsWith('UPDATE inbox_expectation SET due_at = ?'))
    return corrected !== -1 && ran.slice(corrected).some((sql) => sql.startsWith('COMMIT'))
  })
  failing.sql = nothing
  expect((await calls.next()).attempt.number).toBe(2)
})
