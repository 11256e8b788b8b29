import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openInboxDatabase } from '../../../src/inbox/postgres.ts'
import type { Pauses } from '../../../src/inbox/reading.ts'
import { until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  /** Opens a process that handles events, and the media items that it has handled. */
  async function start(handle: () => unknown = () => {}, inbox = {}) {
    const handled: string[] = []
    const { logger, lines } = recordingLogger('info')
    const receiver = postgres.receiver(inbox, { logger })
    receiver.onAny(
      async ({ mediaId }) => {
        await handle()
        handled.push(mediaId)
      },
      { name: 'handle' },
    )
    await receiver.ready()
    const hasLogged = (message: string) => until(async () => lines.some((line) => line.message.startsWith(message)))
    return { receiver, inbox: receiver.inbox, pauses: receiver.inbox.pauses as Pauses, handled, hasLogged }
  }

  test.each([true, false])('all processes obey, also later ones, with notifications: %s', async (listen) => {
    const one = await start(undefined, { listen })
    const front = await start(undefined, { handles: false })
    await front.pauses.pause({ by: 'ana' })
    const other = await start(undefined, { listen })
    expect(await other.pauses.list()).toMatchObject([{ by: 'ana' }])
    await Promise.all([one, other].map(({ hasLogged }) => hasLogged('the inbox is paused')))
    for (let index = 0; index < 40; index++) await accept(front.receiver, `${index}`)
    await sleep(300)
    expect(await front.inbox.stats()).toMatchObject({ waiting: 40, running: 0 })
    expect([...one.handled, ...other.handled]).toEqual([])
    const resumedAt = performance.now()
    await one.pauses.resume()
    await until(async () => one.handled.length + other.handled.length === 40)
    await other.hasLogged('the inbox was resumed')
    expect(performance.now() - resumedAt).toBeLessThan(2_000)
  })

  test('a process gives up what it has claimed and not started', async () => {
    let finish = () => {}
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const front = await start(undefined, { handles: false })
    for (let index = 0; index < 10; index++) await accept(front.receiver, `${index}`)
    const { inbox, pauses, handled } = await start(() => finished, { concurrency: 2 })
    const claimed = async () => (await postgres.held()).length
    // Twice the concurrency.
    await until(async () => (await claimed()) === 4)
    await pauses.pause()
    await until(async () => (await claimed()) === 2)
    const database = await openInboxDatabase({ pool: postgres.pool, schema: postgres.schema })
    expect(await database.stats()).toMatchObject({ waiting: 8, running: 2 })
    finish()
    await until(async () => handled.length === 2)
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.stats()).toMatchObject({ waiting: 8, running: 0, retrying: 0 })
    await database.pauses.resume()
    await until(async () => handled.length === 10)
    expect(handled.toSorted()).toEqual(Array.from({ length: 10 }, (_, index) => `${index}`))
  })

  test('the last known pauses hold while Postgres cannot be reached', async () => {
    const { proxy, pool } = await postgres.throughProxy()
    const { receiver, handled } = await start(undefined, { pool })
    await receiver.inbox.pauses?.pause()
    const front = await start(undefined, { handles: false })
    await accept(front.receiver, 'm')
    await proxy.breakFor(2_500)
    expect(handled).toEqual([])
    await front.pauses.resume()
    await until(async () => handled.length === 1)
  })
})
