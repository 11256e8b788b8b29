import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import type { EventState, Pauses } from '../../../src/inbox/reading.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()
  let queue: string
  beforeEach(() => {
    queue = `queue ${crypto.randomUUID()}`
  })

  function open(options: Partial<BullmqInboxOptions> = {}) {
    const inbox = bullmqInbox({ connection: redis.server.url, queue, ...options })
    const receiver = createReceiver({ verify: unverified(), logger: silent, inbox })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 200 })))
    return receiver
  }

  /** Opens a process with the handlers `a` and `b`, and their runs. */
  function start() {
    const runs: string[] = []
    const receiver = open()
    for (const name of ['a', 'b'])
      receiver.on('encoding.finished', ({ mediaId }) => void runs.push(`${name} of ${mediaId}`), { name })
    const accept = (mediaId: string) => deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId }))
    return { receiver, inbox: receiver.inbox, pauses: receiver.inbox.pauses as Pauses, runs, accept }
  }

  test('all processes obey within two seconds, and a start obeys what was paused before it', async () => {
    const [one, other] = [start(), start()]
    // It makes the queue.
    await one.accept('first')
    await until(async () => one.runs.length + other.runs.length === 2)
    const found = await openInboxQueue({ connection: redis.server.url, queue })
    onTestFinished(() => found.close())
    expect(await found.pauses.pause({ by: 'ana' })).toBe(true)
    expect(await found.pauses.pause({ handler: 'a' })).toBe(true)
    for (let index = 0; index < 20; index++) await one.accept(`${index}`)
    await Promise.all([one, other].map(({ receiver }) => receiver.close()))
    const next = start()
    await sleep(300)
    expect([one.runs.length + other.runs.length, next.runs]).toEqual([2, []])
    expect(await next.inbox.stats()).toMatchObject({ waiting: 20, running: 0 })
    expect(await next.pauses.list()).toMatchObject([{ by: 'ana' }, { handler: 'a' }])
    await found.pauses.resume()
    await until(async () => next.runs.length === 20)
    await until(async () => (await next.inbox.stats()).retrying === 20)
    expect(next.runs.filter((run) => run.startsWith('a'))).toEqual([])
    await found.pauses.resume({ handler: 'a' })
    await until(async () => next.runs.length === 40)
  })

  test('an event that a worker takes only to find its handlers paused is not running', async () => {
    const receiver = open({ handles: false })
    receiver.onAny(() => {}, { name: 'a' })
    receiver.on('encoding.failed', () => {}, { name: 'b' })
    const { inbox } = receiver
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'paused' }))
    await deliver(receiver, samplePayload('encoding.failed', { media_id: 'in part' }))
    const holding = new Worker(queue, () => new Promise(() => {}), {
      connection: { url: redis.server.url, maxRetriesPerRequest: null },
      concurrency: 2,
    })
    onTestFinished(() => holding.close(true))
    await until(async () => (await inbox.stats()).running === 2)
    const pauseSince = (at: number) =>
      redis.client.hset(`webhooks:${queue}:pauses`, 'a', JSON.stringify({ since: new Date(at) }))
    const media = async (state: EventState) =>
      (await inbox.events?.list({ state }))?.events.map(({ mediaId }) => mediaId).toSorted()

    await pauseSince(Date.now() - 10_000)
    expect(await inbox.stats()).toMatchObject({ running: 1, retrying: 1 })
    expect([await media('running'), await media('retrying')]).toEqual([['in part'], ['paused']])
    const [record] = (await inbox.history?.('paused')) ?? []
    expect(record).toMatchObject({ state: 'retrying', attempts: 0, owed: ['a'] })
    expect(record && (await inbox.events?.get(record.key))).toEqual(record)

    // A handler that runs is not stopped by a pause.
    await pauseSince(Date.now())
    expect(await inbox.stats()).toMatchObject({ running: 2, retrying: 0 })
    expect(await media('running')).toEqual(['in part', 'paused'])
  })

  test('a queue that another program has paused is shown as paused, and can be resumed', async () => {
    const { pauses, runs, accept } = start()
    const jobs = new Queue(queue, { connection: { url: redis.server.url } })
    onTestFinished(() => jobs.close())
    await jobs.pause()
    await accept('m')
    const [pause] = await pauses.list()
    expect(pause).toEqual({ since: expect.any(Date) })
    expect(await pauses.list()).toEqual([pause])
    expect(await pauses.pause()).toBe(false)
    expect(runs).toEqual([])
    expect(await pauses.resume()).toBe(true)
    await until(async () => runs.length === 2)
    await pauses.pause({ by: 'ana' })
    await jobs.resume()
    expect(await pauses.list()).toEqual([])
  })
})
