import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type EventJob, EventQueue } from '../../../src/inbox/bullmq/queue.ts'
import { bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import { createReceiver, PermanentFailure, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'
import { future, upgraded, url } from '../../support/unreadable.ts'

type SentCommand = Parameters<Redis['sendCommand']>[0]

/** Makes a promise, and what resolves it. */
function promise() {
  let resolve = () => {}
  const made = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise: made, resolve }
}

const isScript = (name = '') => /^evalsha$|^eval$/i.test(name)

/** Commands without a key. */
const keyless = new Set(['info', 'time', 'quit', 'client', 'select', 'auth', 'call'])

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()

  /** Collects the commands that files of ours send until the test ends, and their number from BullMQ. */
  function watchCommands() {
    const ours: { readonly name: string; readonly args: readonly string[] }[] = []
    const seen = { byBullmq: 0 }
    const send = Redis.prototype.sendCommand
    const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, ...sent) {
      const [{ name, args }] = sent as unknown as [SentCommand & { args: readonly unknown[] }]
      const caller = new Error().stack?.split('\n').find((line) => /\/src\/inbox\/|node_modules\/bullmq\//.test(line))
      if (caller?.includes('/src/inbox/')) ours.push({ name: name.toLowerCase(), args: args.flat().map(String) })
      else if (caller !== undefined) seen.byBullmq++
      return send.apply(this, sent)
    })
    onTestFinished(() => spy.mockRestore())
    return { ours, seen }
  }

  /** Collects what scripts of ours do, as Redis reports it. */
  async function watchScripts(prefix: string) {
    const touched: string[][] = []
    const monitor = await redis.client.duplicate({ lazyConnect: true }).monitor()
    onTestFinished(() => monitor.disconnect())
    let isOurs = false
    monitor.on('monitor', (_time, args: string[], source: string) => {
      // Redis reports a script before its commands.
      if (source !== 'lua') isOurs = isScript(args[0]) && args[3] === prefix
      else if (isOurs) touched.push(args)
    })
    return touched
  }

  /** Makes the inbox do everything that it can. */
  async function doEverything(queue: string) {
    const connection = { port: redis.server.port }
    const front = openInbox(bullmqInbox({ connection, queue, handles: false })).inbox
    onTestFinished(async () => void (await front.close()))
    const inbox = bullmqInbox({ connection, queue, leaseMs: 1_000 })
    const retry = { attempts: 2, baseMs: 1 }
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent, retry })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    const runs: string[] = []
    receiver.onAny(({ mediaId, type }) => void runs.push(`${type} ${mediaId}`), { name: 'first' })
    const second = ({ mediaId }: { mediaId: string }) => {
      if (mediaId === 'dead') throw new PermanentFailure('no')
      if (mediaId === 'retried' && runs.push('second') < 4) throw new Error('no')
    }
    receiver.onAny(second, { name: 'second' })
    receiver.expect('file.received', { then: 'encoding.finished', within: 50, name: 'late' }, () => {
      runs.push('overdue')
    })
    const send = (media_id: string, type: 'encoding.finished' | 'file.received' = 'encoding.finished') =>
      deliver(receiver, samplePayload(type, { media_id }))
    const { stats, deadLetters, pauses, events, expected, activity, history } = receiver.inbox
    await pauses?.pause({ by: 'a test' })
    await send('done')
    await send('done')
    await stats.call(receiver.inbox)
    await pauses?.resume()
    await send('retried')
    await send('dead')
    await send('discarded', 'file.received')
    await send('rule', 'file.received')
    await send('rule')
    await deliver(receiver, future, { url })
    await until(async () => runs.includes('overdue'))
    await until(async () => (await stats.call(receiver.inbox)).deadLetters === 2)
    for (const { key } of await deadLetters.list()) await upgraded(async () => deadLetters.replay(key))
    await until(async () => (await stats.call(receiver.inbox)).deadLetters === 1)
    const reader = await openInboxQueue({ connection, queue })
    await events?.list({ state: 'dead', mediaId: 'dead', type: 'encoding.finished' })
    const [key = ''] = await reader.deadLetters.keys()
    await events?.get(key)
    await events?.retryNow(key)
    await history?.call(receiver.inbox, 'dead')
    await expected?.call(receiver.inbox)
    await activity?.call(receiver.inbox, new Date(0))
    await deliver(receiver, future.replace('m1', 'm2'), { url })
    for (const { key } of await reader.deadLetters.list()) {
      await reader.deadLetters.get(key)
      if (key.startsWith('unreadable')) await reader.deadLetters.replay(key)
      else await reader.deadLetters.discard(key)
    }
    await reader.close()
    await receiver.close()
  }

  test('names no key of BullMQ in any command or script of its own', async () => {
    const queue = `own ${crypto.randomUUID()}`
    const prefix = `webhooks:${queue}:`
    const touched = await watchScripts(prefix)
    const { ours, seen } = watchCommands()
    await doEverything(queue)
    expect(seen.byBullmq).toBeGreaterThan(100)
    expect(ours.some(({ name }) => isScript(name))).toBe(true)
    const foreign = ours.filter(({ name, args }) => {
      if (args.some((arg) => arg.includes('bull:'))) return true
      if (isScript(name)) return args[2] !== prefix || args[3] !== prefix
      return !keyless.has(name) && !args[0]?.startsWith(prefix)
    })
    expect(foreign).toEqual([])
    expect(touched.length).toBeGreaterThan(100)
    const others = touched.filter(([name = '', key]) => !/^(time|command)$/i.test(name) && !key?.startsWith(prefix))
    expect(others).toEqual([])
    // Everything else in Redis is BullMQ's.
    for (const key of await redis.client.keys(`*${queue}*`)) expect(key).toMatch(/^(bull|webhooks):own /)
  })

  test('adds an event with the next delivery if a process ended between its key and its job', async () => {
    const queue = `own ${crypto.randomUUID()}`
    const connection = { port: redis.server.port }
    const { inbox, calls } = openInbox(bullmqInbox({ connection, queue }))
    onTestFinished(async () => {
      calls.finishAll()
      await inbox.close({ timeoutMs: 1_000 })
    })
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    const [key = ''] = await redis.client.keys(`webhooks:${queue}:key:*`)
    first.finish()
    await until(async () => (await inbox.stats()).running === 0)
    // What the process has left behind.
    await redis.client.set(key, 'another process', 'PX', 60_000)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect((await calls.next()).event.key).toBe('one')
  })

  test('does not replay a dead letter while it is discarded', async () => {
    const queue = `own ${crypto.randomUUID()}`
    const connection = { port: redis.server.port }
    const { inbox, calls } = openInbox(bullmqInbox({ connection, queue }))
    const other = new EventQueue(queue, connection, 5_000)
    onTestFinished(async () => {
      await inbox.close({ timeoutMs: 1_000 })
      await other.close()
    })
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const end = other.end.bind(other)
    const replays: boolean[] = []
    vi.spyOn(other, 'end').mockImplementation(async (...of) => {
      replays.push(await inbox.deadLetters.replay('one'))
      return end(...of)
    })
    const job = (await other.find('one')) as EventJob
    expect(await other.discard(job, eventOf('one').event, 60_000)).toBe(true)
    expect(replays).toEqual([false])
    expect(await other.discard(job, eventOf('one').event, 60_000)).toBe(false)
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(await redis.client.keys(`webhooks:${queue}:changing:*`)).toEqual([])
  })

  test('handles an event once if a repeated delivery adds its job after it was handled', async () => {
    const queue = `own ${crypto.randomUUID()}`
    const connection = { port: redis.server.port }
    const { inbox, calls } = openInbox(bullmqInbox({ connection, queue }))
    const slow = new EventQueue(queue, connection, 5_000)
    onTestFinished(async () => {
      await inbox.close({ timeoutMs: 1_000 })
      await slow.close()
    })
    const { promise: whenHandled, resolve: handled } = promise()
    const { promise: whenRemembered, resolve: remembered } = promise()
    const run = slow.own.run.bind(slow.own)
    vi.spyOn(slow.own, 'run').mockImplementation(async (script, ...of) => {
      const answer = await run(script, ...of)
      if (script === 'remember') {
        remembered()
        await whenHandled
      }
      return answer as never
    })
    await inbox.accept(eventOf('one'))
    const repeated = slow.add({ ...eventOf('one'), owed: [] })
    await whenRemembered
    ;(await calls.next()).finish()
    await until(async () => (await inbox.stats()).running === 0)
    handled()
    expect(await repeated).toBe(false)
    await until(async () => {
      const { waiting, running } = await inbox.stats()
      return waiting + running === 0
    })
    await inbox.accept(eventOf('two'))
    const next = await calls.next()
    expect(next.event.key).toBe('two')
    next.finish()
  })
})
