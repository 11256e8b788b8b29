import { describe, expect, onTestFinished, test } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'
import { checkProgressIsStored } from '../stored-progress.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()

  test('begins a handler only once the success of the previous one is in Redis', async () => {
    const queue = `progress ${crypto.randomUUID()}`
    const inbox = bullmqInbox({ connection: redis.server.url, queue })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    await checkProgressIsStored(receiver, {
      block: () => redis.client.call('CLIENT', 'PAUSE', '10000', 'WRITE'),
      unblock: () => redis.client.call('CLIENT', 'UNPAUSE'),
      async completed() {
        const [job] = await redis.client.lrange(`bull:${queue}:active`, 0, -1)
        return JSON.parse((await redis.client.hget(`bull:${queue}:${job}`, 'data')) ?? '{}').progress?.completed
      },
    })
  })

  const open = (options: Partial<BullmqInboxOptions>) => {
    const opened = openInbox(bullmqInbox({ connection: redis.server.url, ...options }))
    onTestFinished(async () => {
      opened.calls.finishAll()
      await opened.inbox.close({ timeoutMs: 1_000 })
    })
    return opened
  }

  /** Opens an inbox with an event that was cut off once, and so often again while it ran alone. */
  const openCutOff = async (cutOffs: number) => {
    const queue = `cut off ${crypto.randomUUID()}`
    await open({ queue, handles: false }).inbox.accept(eventOf('one'))
    const [id] = (await redis.client.lrange(`bull:${queue}:wait`, 0, -1)) as [string]
    const job = `bull:${queue}:${id}`
    const read = async () => JSON.parse((await redis.client.hget(job, 'data')) as string)
    const progress = { attempts: 0, completed: [], failedAttempts: [], crashes: cutOffs, stalls: 0 }
    await redis.client.hset(job, { data: JSON.stringify({ ...(await read()), progress }), stc: cutOffs + 1 })
    return { ...open({ queue }), cutOffs: async () => (await read()).progress.crashes }
  }

  test('handles an event that was cut off ten times, and counts no more if it ends', async () => {
    const { inbox, calls, cutOffs } = await openCutOff(9)
    const call = await calls.next()
    expect(await cutOffs()).toBe(10)
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await until(async () => (await inbox.stats()).retrying === 1)
    expect(await cutOffs()).toBe(9)
  })

  test('makes a dead letter of an event that was cut off eleven times, without a further attempt', async () => {
    const { inbox } = await openCutOff(10)
    await until(async () => (await inbox.stats()).deadLetters === 1)
    expect(await inbox.deadLetters.get('one')).toMatchObject({
      failures: [{ handler: 'none', message: 'the process crashed 11 times while handling it' }],
    })
  })

  test('counts no crash for a process that only closes', async () => {
    const { inbox, calls, cutOffs } = await openCutOff(9)
    await calls.next()
    expect(await cutOffs()).toBe(10)
    expect((await inbox.close({ timeoutMs: 0 })).unfinished).toHaveLength(1)
    calls.finishAll()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await cutOffs()).toBe(9)
  })

  /** Makes Redis fail every command that writes. */
  const fill = async () => {
    await redis.client.config('SET', 'maxmemory', '1')
    onTestFinished(() => makeRoom())
  }
  const makeRoom = async () => void (await redis.client.config('SET', 'maxmemory', '0'))

  test('records the end of an event as soon as Redis can, and does not handle it again', async () => {
    const { logger, lines } = recordingLogger('error')
    const definition = bullmqInbox({ connection: redis.server.url, queue: `full ${crypto.randomUUID()}` })
    const { inbox, calls } = openInbox(definition, logger)
    const refusals = () => lines.filter(({ message }) => message.startsWith('Redis refuses'))
    onTestFinished(async () => void (await inbox.close({ timeoutMs: 1_000 })))
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    await fill()
    call.finish()
    await until(async () => refusals().length > 0)
    expect(refusals()[0]?.message).toMatch(/\(OOM .*raise maxmemory/)
    expect(await inbox.stats()).toMatchObject({ running: 1 })
    await makeRoom()
    await until(async () => (await inbox.stats()).running === 0)
    expect(refusals()).toHaveLength(1)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('takes back the crash of an event that has ended no process as soon as Redis can', async () => {
    const { inbox, calls, cutOffs } = await openCutOff(9)
    const call = await calls.next()
    await fill()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await cutOffs()).toBe(10)
    await makeRoom()
    await until(async () => (await inbox.stats()).retrying === 1)
    expect(await cutOffs()).toBe(9)
  })

  test('names every handler that failed in the reason of the failed job', async () => {
    const queue = `failed ${crypto.randomUUID()}`
    const { inbox, calls } = open({ queue })
    await inbox.accept(eventOf('one'))
    const failures = ['a', 'b'].map((handler) => ({ handler, message: 'Error: no' }))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const [job] = await redis.client.zrange(`bull:${queue}:failed`, '0', '-1')
    expect(await redis.client.hget(`bull:${queue}:${job}`, 'failedReason')).toBe('a: Error: no; b: Error: no')
  })
})
