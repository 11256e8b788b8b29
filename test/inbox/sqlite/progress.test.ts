import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { PermanentFailure } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { checkProgressIsStored } from '../stored-progress.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'

test('a handler begins only once the success of the previous one is in the file', async () => {
  const path = await freshPath()
  const receiver = receiverOver({ path })
  const other = openDatabase(path)
  await checkProgressIsStored(receiver, {
    block: () => other.exec('BEGIN IMMEDIATE'),
    unblock: () => other.exec('COMMIT'),
    completed: () =>
      JSON.parse((other.prepare('SELECT completed FROM inbox_event').get() as { completed: string }).completed),
  })
  other.close()
})

test('a handler that has succeeded is in the file as soon as the inbox says so', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('one'))
  const { attempt } = await calls.next()
  const file = openDatabase(path)
  for (const handler of ['first', 'second']) {
    await attempt.succeeded?.(handler)
    const { completed } = file.prepare('SELECT completed FROM inbox_event').get() as { completed: string }
    expect(JSON.parse(completed)).toContain(handler)
  }
  file.close()
})

test('a handler that failed permanently does not run again after a crash, and runs again after a replay', async () => {
  const path = await freshPath()
  const runs: string[] = []
  const open = (path: string, process: string, flaky: () => unknown) => {
    const receiver = receiverOver({ path }, { retry: { baseMs: 1_000, maxMs: 1_000 } })
    const never = () => {
      runs.push(`never ${process}`)
      throw new PermanentFailure('no')
    }
    return receiver.onAny(never, { name: 'never' }).onAny(flaky, { name: 'flaky' })
  }
  const first = open(path, 'before', () => Promise.reject(new Error('no')))
  await deliver(first, samplePayload('encoding.finished'))
  await until(async () => (await first.inbox.stats()).retrying === 1)
  await first.inbox.events?.retryNow((await first.inbox.events.list()).events[0]?.key as string)
  await until(async () => ((await first.inbox.events?.list())?.events[0]?.failedAttempts.length ?? 0) > 1)
  const copy = await crashed(path)
  await first.close({ timeoutMs: 0 })
  const next = open(copy, 'after', () => runs.push('flaky after'))
  await until(async () => (await next.inbox.stats()).deadLetters === 1)
  expect(runs).toEqual(['never before', 'flaky after'])
  const [deadLetter] = await next.inbox.deadLetters.list()
  expect(deadLetter).toMatchObject({ completed: ['flaky'], failures: [{ handler: 'never' }] })
  await next.inbox.deadLetters.replay(deadLetter?.key as string)
  await until(async () => (await next.inbox.stats()).deadLetters === 1)
  expect(runs).toEqual(['never before', 'flaky after', 'never after'])
})
