import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EventOrder } from '../../../src/inbox/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { testSeed } from '../../support/test-seed.ts'
import { bundled } from './forked.ts'
import { Receivers } from './order/receivers.ts'

const media = Array.from({ length: 100 }, (_, i) => `media-${i}`)
const leaseMs = 1_000

interface Note {
  readonly n: number
  readonly hasFailed: boolean
}

// `npm run soak` sends more.
const looseEvents = process.env['SOAK'] ? 100 : 30
const strictEvents = process.env['SOAK'] ? 50 : 10

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

  /** Reads what the handlers of each media item have noted, in order. */
  const notesOf = async (file: string) => {
    const all = new Map<string, Note[]>(media.map((mediaId) => [mediaId, []]))
    for (const line of (await readFile(file, 'utf8')).split('\n').slice(0, -1)) {
      const [mediaId = '', n, failed] = line.split(' ')
      all.get(mediaId)?.push({ n: Number(n), hasFailed: failed !== undefined })
    }
    return all
  }
  /** Returns the numbers of the events of a media item, in the order in which their handlers first began. */
  const begun = (notes: readonly Note[]) => [...new Set(notes.map(({ n }) => n))]
  const countBegun = async (file: string) =>
    [...(await notesOf(file)).values()].reduce((sum, notes) => sum + begun(notes).length, 0)

  /** Sends events to four processes that are killed and paused, and whose handlers fail. Returns what they have noted. */
  const run = async (order: EventOrder, eventsPerMedia: number, kills: number) => {
    const notes = join(folder, order)
    await writeFile(notes, '')
    const program = await bundled(new URL('./order/child.ts', import.meta.url), folder)
    const total = media.length * eventsPerMedia
    receivers = new Receivers(program, { url: server.url, schema: order, order, notes, leaseMs, seed: testSeed() }, 4)
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
    await receivers.end()
    expect(receivers.kills).toBe(kills)
    return notesOf(notes)
  }

  test('begins the events of a media item in order of acceptance, through kills, pauses and retries', async () => {
    const inOrder = Array.from({ length: looseEvents }, (_, n) => n)
    for (const [mediaId, notes] of await run('loose', looseEvents, 12)) expect(begun(notes), mediaId).toEqual(inOrder)
  })

  test('in a strict order, begins nothing behind an event that has failed until it runs again', async () => {
    const inOrder = Array.from({ length: strictEvents }, (_, n) => n)
    let failures = 0
    for (const [mediaId, notes] of await run('strict', strictEvents, 6)) {
      expect(begun(notes), mediaId).toEqual(inOrder)
      for (const [index, { n, hasFailed }] of notes.entries()) {
        const next = notes[index + 1]
        // It ended with the run.
        if (!hasFailed || next === undefined) continue
        failures++
        expect(next.n, `${mediaId}: ${JSON.stringify(notes)}`).toBeLessThanOrEqual(n)
      }
    }
    expect(failures).toBeGreaterThan(0)
  })
})
