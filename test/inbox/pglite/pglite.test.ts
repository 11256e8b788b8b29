import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type PgliteInboxOptions, pgliteInbox } from '../../../src/inbox/pglite.ts'
import { createReceiver, type Receiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const receiverOver = (db: PGlite, options: Partial<PgliteInboxOptions> = {}) => {
  const inbox = pgliteInbox({ db, timeoutMs: 60_000, ...options })
  const receiver = createReceiver({ verify: unverified(), logger: silent, inbox, retry: { attempts: 3, baseMs: 1 } })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  return receiver
}

const send = async (receiver: Pick<Receiver, 'receive'>, mediaId: string) =>
  (await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId }))).status

const leftOf = async ({ inbox }: Receiver) => {
  const { waiting, running, retrying } = await inbox.stats()
  return waiting + running + retrying
}

test('what a killed process has acknowledged is written once by the next one', async () => {
  const folder = join(await temporaryFolder(), 'data')
  const child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), [folder, '20'], {
    execArgv: ['--import', 'tsx'],
  })
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])

  const db = await PGlite.create(folder)
  onTestFinished(() => db.close())
  await db.exec('CREATE TABLE written (media text)')
  const receiver = receiverOver(db)
  const write = (client: PoolClient, mediaId: string) =>
    client.query('INSERT INTO public.written VALUES ($1)', [mediaId])
  receiver.onAny(({ mediaId }, { transaction }) => transaction((client) => write(client, mediaId)), { name: 'write' })
  await receiver.ready()
  const written = async () =>
    (await db.query<{ media: string }>('SELECT media FROM written')).rows.map(({ media }) => media).sort()
  await expect.poll(written).toEqual(Array.from({ length: 20 }, (_, i) => `m${i}`).sort())
})

describe('a PGlite that the application uses as well', () => {
  let db: PGlite
  beforeAll(async () => {
    db = await PGlite.create()
    await db.exec('CREATE TABLE written (content text)')
  })
  afterAll(() => db.close())
  const contents = async () =>
    (await db.query<{ content: string }>('SELECT content FROM written')).rows.map(({ content }) => content)

  test('keeps an event although the transaction that it has open meanwhile is rolled back', async () => {
    const receiver = receiverOver(db, { schema: 'beside a transaction' })
    receiver.onAny(() => {})
    await receiver.ready()
    let sent: Promise<number> | undefined
    await db.transaction(async (transaction) => {
      await transaction.query("INSERT INTO written VALUES ('rolled back')")
      sent = send(receiver, 'm1')
      // Its queries lock the session one by one, so the delivery comes between them.
      for (let i = 0; i < 20; i++) await transaction.query('SELECT pg_sleep(0.005)')
      await transaction.rollback()
    })
    expect(await sent).toBe(200)
    await expect.poll(() => leftOf(receiver)).toBe(0)
    expect(await contents()).toEqual([])
  })

  test('has its query wait for the transaction of a handler, which takes nothing of it back', async () => {
    const receiver = receiverOver(db, { schema: 'beside a handler' })
    let asked: Promise<unknown> | undefined
    receiver.onAny((_, { transaction, attempt }) =>
      transaction(async (client) => {
        if (attempt > 1) return
        await client.query("INSERT INTO public.written VALUES ('of the handler')")
        asked = db.query("INSERT INTO written VALUES ('of the application')")
        throw new Error('no')
      }),
    )
    await receiver.ready()
    expect(await send(receiver, 'm1')).toBe(200)
    await expect.poll(() => leftOf(receiver)).toBe(0)
    await asked
    expect(await contents()).toEqual(['of the application'])
  })
})

test('a PGlite that still starts makes the inbox wait', async () => {
  const db = new PGlite()
  onTestFinished(() => db.close())
  const receiver = receiverOver(db)
  receiver.onAny(() => {})
  await receiver.ready()
  expect(await send(receiver, 'm1')).toBe(200)
})

test('a PGlite that is closed makes deliveries unavailable', async () => {
  const db = await PGlite.create()
  const receiver = receiverOver(db, { timeoutMs: 100 })
  receiver.onAny(() => {})
  await receiver.ready()
  await db.close()
  expect(await send(receiver, 'm1')).toBe(503)
})

test.each([[undefined], [{}], ['./data'], [{ query() {} }]])('%j is no PGlite', (db) => {
  expect(() => pgliteInbox({ db: db as never })).toThrow(/db must be a PGlite/)
})
