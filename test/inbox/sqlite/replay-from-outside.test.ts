import { expect, onTestFinished, test } from 'vitest'
import type { ReplayReport } from '../../../src/inbox/reading.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { freshPath, started } from './sqlite-tests.ts'

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const

/** Makes a file with dead letters, the first an unreadable delivery, which no process has open. */
async function withDeadLetters(count: number) {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  const body = new TextEncoder().encode('{')
  await inbox.keepUnreadable?.({ reason: 'no JSON', receivedAt: new Date(), eventId: undefined, body })
  for (let i = 0; i < count; i++) {
    const { event, receivedAt } = eventOf(`${i}`)
    const type = i % 2 === 0 ? 'encoding.failed' : event.type
    await inbox.accept({ event: { ...event, type } as typeof event, receivedAt })
    ;(await calls.next()).finish(dead)
  }
  await until(async () => (await inbox.stats()).deadLetters === count + 1)
  await inbox.close()
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  return { path, file }
}

test('all dead letters of a file are replayed in commits of up to 100, oldest first', async () => {
  const { path, file } = await withDeadLetters(249)
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  // A number that changes with each commit of another connection.
  const version = () => (database.prepare('PRAGMA data_version').get() as { data_version: number }).data_version
  const versions = new Set([version()])
  const reports: ReplayReport[] = []
  const onProgress = (report: ReplayReport) => {
    reports.push(report)
    versions.add(version())
  }
  const report = await file.deadLetters.replayAll({ perSecond: 1_000_000, onProgress })
  expect(report).toEqual({ total: 250, replayed: 250, kept: 0 })
  expect(reports).toEqual(Array.from({ length: 250 }, (_, i) => ({ total: 250, replayed: i + 1, kept: 0 })))
  expect(versions.size).toBe(4)
  // The unreadable delivery waits for a process that can parse it.
  expect(file.stats()).toMatchObject({ waiting: 249, deadLetters: 1 })
  // In order of acceptance: each lies behind those that were replayed before.
  const { events } = await file.events.list({ state: 'waiting', order: 'oldest', limit: 249 })
  expect(events.map(({ key }) => key)).toEqual(Array.from({ length: 249 }, (_, i) => `${i}`))
  await started({ path }).calls.next()
})

test('the dead letters of a type and a time are replayed, until a signal is aborted', async () => {
  const { file } = await withDeadLetters(4)
  expect(await file.deadLetters.replayAll({ since: new Date(Date.now() + 60_000) })).toMatchObject({ total: 0 })
  const controller = new AbortController()
  const options = { type: 'encoding.failed', perSecond: 1, signal: controller.signal }
  const report = await file.deadLetters.replayAll({ ...options, onProgress: () => controller.abort() })
  expect(report).toEqual({ total: 2, replayed: 1, kept: 0 })
  expect(file.stats()).toMatchObject({ waiting: 1, deadLetters: 4 })
  await expect(file.deadLetters.replayAll({ perSecond: 0 })).rejects.toMatchObject({ code: 'invalid_option' })
  await expect(file.deadLetters.replayAll(untyped({ limit: 1 }))).rejects.toMatchObject({ code: 'invalid_option' })
})
