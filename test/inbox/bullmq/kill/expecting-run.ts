import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openInboxQueue } from '../../../../src/inbox/bullmq.ts'
import { makeDelivery } from '../../../../src/testing/deliver.ts'
import { samplePayload } from '../../../../src/testing/index.ts'
import { sign } from '../../../conformance/sending.ts'
import type { RedisServer } from '../../../support/redis/redis-server.ts'
import { oneOf, seeded } from '../../../support/seeded.ts'
import { judge, type KillReport, type Moment } from '../../kill/judge.ts'
import { Killed } from '../../kill/killed.ts'
import { readRuns } from '../../kill/runs.ts'
import { bundled } from '../../postgres/forked.ts'
import type { ExpectingTask } from './expecting-child.ts'

/** Long enough for a busy machine to renew it. */
const leaseMs = 5_000
const withinMs = 1_000
/** The number of media items at a time. */
const atOnce = 24

/** The acknowledged events of the media items, by what has to come of their expectations. */
interface Expected {
  /** No event has ended them. */
  readonly late: Set<string>
  /** Their end was acknowledged before the deadline, or before the event that begins the expectation. */
  readonly inTime: Set<string>
}

/** Has acknowledged a file, and its end never, in time, before it, or at about the deadline. */
async function liveOn(mediaId: string, expected: Expected, post: Post, random: () => number): Promise<void> {
  const [ends, endsBefore, repeats] = [random() < 0.7, random() < 0.2, random() < 0.2]
  const end = () => post(mediaId, 'encoding.finished', '2026-03-01T12:01:00Z')
  const begin = () => post(mediaId, 'file.received', '2026-03-01T12:00:00Z')
  if (ends && endsBefore) await end()
  const leastDeadline = Date.now() + withinMs
  await begin()
  if (repeats) await begin()
  if (!ends) return void expected.late.add(mediaId)
  if (!endsBefore) {
    await sleep(random() * 1.5 * withinMs)
    await end()
  }
  if (endsBefore || Date.now() < leastDeadline) expected.inTime.add(mediaId)
}

/** Sends an event until it is acknowledged. */
type Post = (mediaId: string, type: 'file.received' | 'encoding.finished', emittedAt: string) => Promise<void>

const postTo =
  (urls: () => readonly string[], random: () => number): Post =>
  async (media_id, type, emitted_at) => {
    for (;;) {
      const running = urls()
      if (running.length > 0) {
        const url = oneOf(random, running)
        const { headers, body } = await makeDelivery(samplePayload(type, { media_id, emitted_at }), { url, sign })
        const answer = await fetch(url, {
          method: 'POST',
          headers: headers as Headers,
          body: body as Uint8Array<ArrayBuffer>,
        })
          .then(async (response) => {
            await response.arrayBuffer()
            return response.status
          })
          .catch(() => 0)
        if (answer === 200) return
      }
      await sleep(5)
    }
  }

/**
 * Runs three receivers that share a queue and expect events; two of them handle. One after another is killed at a random
 * moment and started again. Each expectation that was not ended has to be reported, and none that was ended in time.
 */
export async function expectingRun(server: RedisServer, kills: number, seed: number): Promise<KillReport> {
  const random = seeded(seed)
  const queue = `expecting run ${seed}`
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-expecting-run-'))
  const program = await bundled(new URL('./expecting-child.ts', import.meta.url), folder)
  let started = 0
  const start = (place: number) => {
    const name = `process-${started++}`
    const task: ExpectingTask = {
      ...{ name, folder, seed: Math.floor(random() * 1e9) },
      ...{ connection: server.url, queue, handles: place < 2, leaseMs, withinMs },
    }
    return Killed.start(program, task)
  }
  const receivers = await Promise.all([0, 1, 2].map(start))
  const expected: Expected = { late: new Set(), inTime: new Set() }
  const post = postTo(() => receivers.flatMap(({ urls }) => urls), random)
  let media = 0
  let isOver = false
  const senders = Array.from({ length: atOnce }, async () => {
    while (!isOver) await liveOn(`media-${media++}`, expected, post, random)
  })
  const killed: Moment[] = []
  try {
    for (let kill = 0; kill < kills; kill++) {
      const place = kill % receivers.length
      await sleep(withinMs / 2 + random() * withinMs)
      killed.push(await (receivers[place] as Killed).kill())
      receivers[place] = await start(place)
    }
    isOver = true
    await Promise.all(senders)
    const deadLetters = await settled(server, queue)
    const runs = readRuns(folder)
    const report = judge({ acknowledged: expected.late, handlers: ['late'], runs, kills: killed, deadLetters })
    const wrong = runs.filter(({ key }) => expected.inTime.has(key)).map(({ key }) => `${key} was ended in time`)
    const few = expected.inTime.size < 10 ? [`only ${expected.inTime.size} were ended in time`] : []
    return { ...report, faults: [...report.faults, ...wrong, ...few] }
  } finally {
    isOver = true
    await Promise.all(receivers.map((receiver) => receiver.end()))
    await rm(folder, { recursive: true })
  }
}

/** Waits until nothing is expected any more and every event is handled. Returns the number of dead letters. */
async function settled({ url }: RedisServer, queue: string): Promise<number> {
  const opened = await openInboxQueue({ connection: url, queue })
  try {
    for (;;) {
      const { waiting, running, retrying, deadLetters, expected = 0 } = await opened.stats()
      if (waiting + running + retrying + expected === 0) return deadLetters
      await sleep(20)
    }
  } finally {
    await opened.close()
  }
}
