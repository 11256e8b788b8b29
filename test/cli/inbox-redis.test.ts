import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { silent } from '../support/silent.ts'
import { checkTarget } from './inbox-target.suite.ts'
import { finish } from './program.ts'
import { expectFailure } from './served-inbox.ts'

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
      target: server.url,
      flags: ['--queue', queue],
      queue,
      inbox: () => bullmqInbox({ connection: server.url, queue }),
    }
  }

  checkTarget(freshPlace, false)

  test('stats says how long the oldest event has waited to start, and events that handled ones are forgotten', async () => {
    const { flags, queue } = await freshPlace()
    const definition = bullmqInbox({ connection: server.url, queue, handles: false })
    const receiver = createReceiver({ verify: unverified(), inbox: definition, logger: silent })
    onTestFinished(async () => void (await receiver.close()))
    receiver.onAny(() => {})
    await deliver(receiver, samplePayload('encoding.finished'))
    const { output } = await finish(['inbox', server.url, 'stats', ...flags])
    expect(output).toMatch(/^waiting +1\nrunning +0\nretrying +0\ndead letters +0\noldest waits +\d s\n$/)
    expect((await finish(['inbox', server.url, 'events', '--state', 'running', ...flags])).output).toBe('0 events\n')
    await expectFailure(
      [server.url, 'events', '--state', 'handled', ...flags],
      /an inbox in Redis forgets an event once it is handled/,
    )
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
})
