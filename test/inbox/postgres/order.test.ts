import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { testSeed } from '../../support/test-seed.ts'
import { bundled } from './forked.ts'
import { Receivers } from './order/receivers.ts'

const media = Array.from({ length: 100 }, (_, i) => `media-${i}`)
// `npm run soak` sends more.
const eventsPerMedia = process.env['SOAK'] ? 100 : 30
const total = media.length * eventsPerMedia
const kills = 12
const leaseMs = 1_000

describe.skipIf(!findPostgres())('postgresInbox on four processes', () => {
  let server: PostgresServer
  let folder: string
  let receivers: Receivers
  beforeAll(async () => {
    server = await PostgresServer.start()
    folder = await mkdtemp(join(tmpdir(), 'media-webhooks-order-'))
  })
  afterAll(async () => {
    await receivers?.end()
    await server?.remove()
    await rm(folder, { recursive: true })
  })

  /** Returns the numbers of the events of each media item, in the order in which their handlers first began. */
  const begun = async (notes: string) => {
    const orders = new Map(media.map((mediaId) => [mediaId, new Set<number>()]))
    for (const line of (await readFile(notes, 'utf8')).split('\n').slice(0, -1)) {
      const [mediaId = '', n] = line.split(' ')
      orders.get(mediaId)?.add(Number(n))
    }
    return orders
  }
  const countBegun = async (notes: string) =>
    [...(await begun(notes)).values()].reduce((sum, { size }) => sum + size, 0)

  test(`begins ${total} events of ${media.length} media in order of acceptance, through kills, pauses and retries`, async () => {
    const notes = join(folder, 'notes')
    await writeFile(notes, '')
    const program = await bundled(new URL('./order/child.ts', import.meta.url), folder)
    receivers = new Receivers(program, { url: server.url, notes, leaseMs, seed: testSeed() }, 4)
    // An event is sent when the previous one of the same media item has been acknowledged by any process.
    const sent = media.map(async (mediaId) => {
      for (let n = 0; n < eventsPerMedia; n++) await receivers.deliver({ mediaId, n })
    })
    for (let kill = 1; kill <= kills; kill++) {
      while ((await countBegun(notes)) < (total * kill) / (kills + 1)) await sleep(20)
      await receivers.kill(kill % 4 === 0 ? leaseMs * 1.5 : undefined)
    }
    await Promise.all(sent)
    while ((await countBegun(notes)) < total) await sleep(50)

    const inOrder = Array.from({ length: eventsPerMedia }, (_, n) => n)
    for (const [mediaId, order] of await begun(notes)) expect([...order], mediaId).toEqual(inOrder)
    expect(receivers.kills).toBe(kills)
  })
})
