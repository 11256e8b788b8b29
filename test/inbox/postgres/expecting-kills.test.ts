import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { hashKey } from '../../../src/inbox/postgres/keys.ts'
import { openInboxDatabase } from '../../../src/inbox/postgres.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { oneOf, seeded } from '../../support/seeded.ts'
import { testSeed } from '../../support/test-seed.ts'
import type { ExpectingTask, FromExpecting, ToExpecting } from './expecting/task.ts'
import { bundled, Forked } from './forked.ts'

const size = 3
const kills = 8
const withinMs = 700

type Process = Forked<FromExpecting, ToExpecting>

/** Processes on one database, each of which is replaced when it is killed. */
class Processes {
  readonly #program: string
  readonly #task: ExpectingTask
  readonly #acknowledged: (event: ToExpecting) => void
  readonly #members: { process: Process; isReady: boolean }[] = []

  constructor(program: string, task: ExpectingTask, acknowledged: (event: ToExpecting) => void) {
    this.#program = program
    this.#task = task
    this.#acknowledged = acknowledged
    for (let place = 0; place < size; place++) this.#start(place)
  }

  #start(place: number): void {
    const process: Process = new Forked(this.#program, this.#task, (message) => {
      if (message === 'ready') member.isReady = true
      else this.#acknowledged(message)
    })
    const member = { process, isReady: false }
    this.#members[place] = member
  }

  get ready(): readonly Process[] {
    return this.#members.filter(({ isReady }) => isReady).map(({ process }) => process)
  }

  async kill(place: number): Promise<void> {
    await this.#members[place]?.process.kill()
    this.#start(place)
  }

  async end(): Promise<void> {
    await Promise.all(this.#members.map(({ process }) => process.kill()))
  }
}

/** Delivers events again and again until a process acknowledges them, and remembers when that was. */
class Sender {
  readonly acknowledgedAt = new Map<string, number>()
  readonly #ready: () => readonly Process[]
  readonly #random: () => number

  constructor(ready: () => readonly Process[], random: () => number) {
    this.#ready = ready
    this.#random = random
  }

  acknowledged({ type, mediaId }: ToExpecting): void {
    const key = `${type} ${mediaId}`
    if (!this.acknowledgedAt.has(key)) this.acknowledgedAt.set(key, Date.now())
  }

  async send(event: ToExpecting): Promise<void> {
    while (!this.acknowledgedAt.has(`${event.type} ${event.mediaId}`)) {
      const ready = this.#ready()
      if (ready.length > 0) oneOf(this.#random, ready).tell(event)
      await sleep(200)
    }
  }
}

describe.skipIf(!findPostgres())('postgresInbox', () => {
  test('reports each expectation once although its processes are killed, and none after its end was accepted', async () => {
    const server = await PostgresServer.start()
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-expecting-'))
    onTestFinished(async () => {
      await server.remove()
      await rm(folder, { recursive: true })
    })
    // Only the inbox prevents a second row.
    await server.query('CREATE TABLE reported (media text); CREATE TABLE accepted (hash uuid, at timestamptz)')
    const random = seeded(testSeed())
    const program = await bundled(new URL('./expecting/child.ts', import.meta.url), folder)
    const processes: Processes = new Processes(program, { url: server.url, withinMs }, (event) =>
      sender.acknowledged(event),
    )
    const sender = new Sender(() => processes.ready, random)
    onTestFinished(() => processes.end())
    await vi.waitFor(() => expect(processes.ready.length).toBeGreaterThan(0))
    await server.query(`
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO public.accepted VALUES (NEW.hash, clock_timestamp()); RETURN NULL; END';
      CREATE TRIGGER noted AFTER INSERT ON media_webhooks.event FOR EACH ROW EXECUTE FUNCTION note()`)

    const [ended, unended]: [string[], string[]] = [[], []]
    const sent: Promise<unknown>[] = []
    const sendSome = async () => {
      for (let index = 0; index < 15; index++) {
        const mediaId = `media ${sent.length}`
        const hasEnd = random() < 0.7
        ;(hasEnd ? ended : unended).push(mediaId)
        sent.push(sender.send({ type: 'file.received', mediaId }))
        // Before the begin, at the same time, or around the deadline.
        const afterMs = random() < 0.3 ? 0 : withinMs * (0.8 + random())
        sent.push(hasEnd ? sleep(afterMs).then(() => sender.send({ type: 'encoding.finished', mediaId })) : sleep(0))
        await sleep(random() * 40)
      }
    }
    for (let kill = 0; kill < kills; kill++) {
      await sendSome()
      await processes.kill(kill % size)
    }
    await Promise.all(sent)
    const database = await openInboxDatabase({ connection: server.url })
    onTestFinished(() => database.close())
    await vi.waitFor(
      async () => {
        const { expected, waiting, running, retrying } = await database.stats()
        expect([expected, waiting, running, retrying]).toEqual([undefined, 0, 0, 0])
      },
      { timeout: 60_000, interval: 100 },
    )

    const rows = await server.query<{ media: string }>('SELECT media FROM reported')
    const reported = rows.map(({ media }) => media)
    expect(new Set(reported).size).toBe(reported.length)
    expect(unended.filter((mediaId) => !reported.includes(mediaId))).toEqual([])
    expect(await database.deadLetters.list()).toEqual([])
    const { events } = await database.events.list({ type: 'expectation.overdue', limit: 1_000 })
    expect(events.map(({ mediaId }) => mediaId).toSorted()).toEqual(reported.toSorted())
    // No overdue event was accepted before its deadline, or after the end that would have prevented it.
    for (const { key, mediaId, receivedAt } of events) {
      const [row] = await server.query<{ at: number }>(
        'SELECT (extract(epoch FROM at) * 1000)::float8 AS at FROM accepted WHERE hash = $1',
        [hashKey(key)],
      )
      expect(row?.at).toBeGreaterThanOrEqual(receivedAt.getTime())
      expect(row?.at).toBeLessThan(
        sender.acknowledgedAt.get(`encoding.finished ${mediaId}`) ?? Number.POSITIVE_INFINITY,
      )
    }
    const lateEnds = reported.filter((mediaId) => ended.includes(mediaId)).length
    console.info(
      `postgresInbox, ${kills} kills: ${unended.length} expectations without an end, ${ended.length} with one, ` +
        `${lateEnds} of them too late; ${reported.length} reports (seed ${testSeed()})`,
    )
    // Both outcomes of an end occur.
    expect(lateEnds).toBeGreaterThan(0)
    expect(lateEnds).toBeLessThan(ended.length)
  })
})
