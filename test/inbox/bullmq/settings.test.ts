import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import { openInbox } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'

describe.skipIf(!findRedis())('bullmqInbox warns of settings of Redis that are changed while it runs', () => {
  let server: RedisServer
  let inbox: Inbox | undefined
  beforeEach(async () => {
    server = await RedisServer.start({ settings: { appendonly: 'no' } })
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  })
  afterEach(async () => {
    await inbox?.close({ timeoutMs: 100 })
    vi.useRealTimers()
    await server?.remove()
  })

  /** Opens an inbox, and waits until it has seen the settings. */
  async function open() {
    const { logger, lines } = recordingLogger('warn')
    inbox = openInbox(bullmqInbox({ connection: server.url, handles: false }), logger).inbox
    await vi.waitUntil(() => lines.length > 0)
    expect(lines.splice(0)).toMatchObject([{ message: expect.stringContaining('appendonly') }])
    return lines
  }
  const set = (policy: string) => server.command('CONFIG', 'SET', 'maxmemory-policy', policy)

  test('once for each change, when it connects again', async () => {
    const lines = await open()
    const policies = () => lines.map(({ details }) => details['policy'])
    const reconnect = () => server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await set('allkeys-lru')
    await reconnect()
    await vi.waitUntil(() => lines.length === 1)
    await reconnect()
    await inbox?.stats()
    await set('allkeys-random')
    await reconnect()
    await vi.waitUntil(() => policies().includes('allkeys-random'))
    expect(policies()).toEqual(['allkeys-lru', 'allkeys-random'])
  })

  test('within a minute', async () => {
    const lines = await open()
    await set('allkeys-lru')
    vi.advanceTimersByTime(60_000)
    await vi.waitUntil(() => lines.length === 1)
    expect(lines[0]).toMatchObject({
      details: { policy: 'allkeys-lru' },
      message: expect.stringContaining('noeviction'),
    })
  })
})
