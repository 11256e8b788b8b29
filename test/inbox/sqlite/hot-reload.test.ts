import { expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import type * as Sqlite from '../../../src/inbox/sqlite.ts'
import { createReceiver, type Handler, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { startProgram } from './processes/start.ts'
import { freshPath } from './sqlite-tests.ts'

/** Evaluates the module again, as a hot reload does, and makes a receiver with it. */
async function reloaded(options: Sqlite.SqliteInboxOptions, handler: Handler) {
  vi.resetModules()
  const { sqliteInbox }: typeof Sqlite = await import('../../../src/inbox/sqlite.ts')
  const { logger, lines } = recordingLogger('info')
  const receiver = createReceiver({ verify: unverified(), logger, inbox: sqliteInbox(options) }).onAny(handler)
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 500 })))
  const send = (mediaId: string) => deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId }))
  return { receiver, lines, send, sqliteInbox }
}

const handedOver = 'the inbox handed its file to another receiver of this process'

test('the receiver of new code takes over the file of the old one, with its events', async () => {
  const path = await freshPath()
  const reasons: unknown[] = []
  const hangs: Handler = (_, { signal }) =>
    new Promise(() => signal.addEventListener('abort', () => reasons.push(signal.reason)))
  const old = await reloaded({ path }, hangs)
  expect((await old.send('running')).status).toBe(200)
  await until(async () => (await old.receiver.inbox.stats()).running === 1)
  // Its commit is still to come.
  const inFlight = old.send('in flight')
  const handled: string[] = []
  const next = await reloaded({ path }, ({ mediaId }) => void handled.push(mediaId))
  expect(next.sqliteInbox).not.toBe(old.sqliteInbox)
  expect((await inFlight).status).toBe(200)
  await until(async () => handled.length === 2)
  expect(handled.sort()).toEqual(['in flight', 'running'])
  expect(reasons).toMatchObject([
    { code: 'lease_lost', message: expect.stringMatching(/another receiver of this process/) },
  ])
  expect((await old.send('late')).status).toBe(503)
  expect(old.lines.filter(({ message }) => message === handedOver)).toMatchObject([
    { level: 'warn', details: { path } },
  ])
  expect(next.lines.filter(({ level }) => level !== 'debug')).toEqual([])
  expect(await old.receiver.close()).toEqual({ unfinished: [] })
  expect((await next.send('after')).status).toBe(200)
  await until(async () => handled.length === 3)
})

test('a file can be taken over again and again, also over one connection that the application keeps', async () => {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  const handled: string[] = []
  for (const version of ['1', '2', '3']) {
    const { send } = await reloaded({ database }, ({ mediaId }) => void handled.push(`${mediaId} by ${version}`))
    expect((await send(`m${version}`)).status).toBe(200)
    await until(async () => handled.includes(`m${version} by ${version}`))
  }
  expect(handled).toEqual(['m1 by 1', 'm2 by 2', 'm3 by 3'])
})

test('a receiver that has closed its file has nothing to hand over', async () => {
  const path = await freshPath()
  const old = await reloaded({ path }, () => {})
  await old.receiver.close()
  const next = await reloaded({ path }, () => {})
  expect((await next.send('m')).status).toBe(200)
  expect(old.lines.map(({ message }) => message)).not.toContain(handedOver)
})

test('the late close of an old receiver leaves the file to the new one, which no other process can open', async () => {
  const path = await freshPath()
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  const old = await reloaded({ database }, () => {})
  const next = await reloaded({ database }, () => {})
  await old.receiver.close()
  await expect(startProgram('first-owner', [path])).rejects.toThrow()
  expect((await next.send('m')).status).toBe(200)
})

test('a receiver that was made twice is handed over before it has started, and stays quiet', async () => {
  const path = await freshPath()
  vi.resetModules()
  const { sqliteInbox }: typeof Sqlite = await import('../../../src/inbox/sqlite.ts')
  const { logger, lines } = recordingLogger('warn')
  const make = () => createReceiver({ verify: unverified(), logger, inbox: sqliteInbox({ path }) }).onAny(() => {})
  const [old, next] = [make(), make()]
  onTestFinished(async () => void (await Promise.all([old.close(), next.close()])))
  expect((await deliver(next, samplePayload('encoding.finished'))).status).toBe(200)
  await until(async () => (await next.inbox.stats()).running === 0)
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  expect(lines.map(({ message }) => message)).toEqual([handedOver])
})
