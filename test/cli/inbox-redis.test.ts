import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { bullmqInbox, openInboxQueue } from '../../src/inbox/bullmq.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'
import { checkInboxCommand, checkUsage, expectFailure, serve } from './inbox-on-server.suite.ts'
import { checkReadingCommand } from './inbox-reading.suite.ts'
import { finish } from './program.ts'

const password = 'pa/ss@w0rd of Redis'

describe.skipIf(!findRedis())('inbox of Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  let places = 0
  const freshPlace = async () => {
    const queue = `inbox ${++places}`
    return {
      url: server.url,
      flags: ['--queue', queue],
      queue,
      inbox: () => bullmqInbox({ connection: server.url, queue }),
    }
  }

  checkInboxCommand(freshPlace)
  checkReadingCommand(freshPlace, { handled: false, running: true, stops: false })
  checkUsage('redis://127.0.0.1', ['--schema', 's'])

  test('stats says how long the oldest event has waited to start', async () => {
    const { flags, queue } = await freshPlace()
    const definition = bullmqInbox({ connection: server.url, queue, handles: false })
    const receiver = createReceiver({ verify: unverified(), inbox: definition, logger: silent })
    onTestFinished(async () => void (await receiver.close()))
    receiver.onAny(() => {})
    await deliver(receiver, samplePayload('encoding.finished'))
    const { output } = await finish(['inbox', server.url, 'stats', ...flags])
    expect(output).toMatch(/^waiting +1\nrunning +0\nretrying +0\ndead letters +0\noldest waits +\d s\n$/)
  })

  test('says that there is no such queue, and makes none', async () => {
    const { flags, queue } = await freshPlace()
    const why = new RegExp(`^media-webhooks: redis://127.*: Redis has no queue ${queue} of an inbox: .*--queue`)
    await expectFailure([server.url, 'stats', ...flags], why)
    const redis = new Redis(server.port)
    expect(await redis.keys(`*${queue}*`)).toEqual([])
    redis.disconnect()
  })

  test.each([
    [
      'is not running',
      'redis://:pa-ss-w0rd-9@127.0.0.1:1',
      /redis:\/\/…@127\.0\.0\.1:1: .*ECONNREFUSED.* \(is the server running/,
    ],
    ['has a wrong name', 'rediss://:pa-ss-w0rd-9@no-such-host.invalid', /\(is the host name right\?\)/],
  ])('says so in one line if the server %s', (_, url, why) => expectFailure([url, 'stats'], why, 'pa-ss'))

  test('says that the password is wrong or missing, and does not print it', async () => {
    const guarded = await RedisServer.start({ settings: { requirepass: password } })
    onTestFinished(() => guarded.remove())
    const at = (credentials: string) => `redis://${credentials}127.0.0.1:${guarded.port}`
    await expectFailure([at(':wrong-pa-ss@'), 'stats'], /\(are the user and the password right\?\)/, 'wrong-pa-ss')
    await expectFailure([at(''), 'stats'], /\(the server requires a password: put it into the URL\)/)
    await expectFailure([at(`:${encodeURIComponent(password)}@`), 'stats'], /Redis has no queue/, password)
  })

  test('openInboxQueue lists, replays and discards', async () => {
    const place = await freshPlace()
    const { makeDeadLetter, fix, handled } = await serve(place)
    await makeDeadLetter('m1', 'm2')
    const queue = await openInboxQueue({ connection: { port: server.port }, queue: place.queue })
    onTestFinished(() => queue.close())
    expect(await queue.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 2 })
    expect(await queue.deadLetters.keys()).toEqual(['m1', 'm2'])
    expect(await queue.deadLetters.get('m1')).toMatchObject({ key: 'm1', attempts: 2 })
    fix()
    expect(await queue.deadLetters.replay('m1')).toBe(true)
    await vi.waitUntil(() => handled.length === 1)
    expect(await queue.deadLetters.replay('m1')).toBe(false)
    expect(await queue.deadLetters.discard('m2')).toBe(true)
  })

  test.each([
    [{}, /connection must be/],
    [{ connection: 'redis://127.0.0.1', queue: 'a:b' }, /queue must be a name without a colon/],
    [{ connection: 'redis://127.0.0.1', que: 'a' }, /que/],
  ])('openInboxQueue rejects with invalid_option for %j', async (options, message) => {
    await expect(openInboxQueue(untyped(options))).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(message),
    })
  })
})
