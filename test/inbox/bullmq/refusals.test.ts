import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'

/** The rights in docs/inbox-bullmq.md. */
const documented = '+@read +@write +@scripting +@connection +@transaction -@dangerous +time +info'
const keys = '~bull:media-webhooks:* ~webhooks:media-webhooks:*'

describe.skipIf(!findRedis())('bullmqInbox whose steps Redis refuses', () => {
  let server: RedisServer
  const inboxes: Inbox[] = []
  beforeEach(async () => {
    server = await RedisServer.start()
  })
  afterEach(async () => {
    for (const inbox of inboxes.splice(0)) await inbox.close({ timeoutMs: 200 })
    await server?.remove()
  })

  const allow = (rules: string) =>
    server.command('ACL', 'SETUSER', 'webhooks', 'reset', 'on', '>secret', ...rules.split(' '))
  function open(options: Partial<BullmqInboxOptions> = {}, username = 'webhooks') {
    const { logger, lines } = recordingLogger('warn')
    const connection = { port: server.port, ...(username !== '' && { username, password: 'secret' }) }
    const opened = openInbox(bullmqInbox({ connection, leaseMs: 3_000, ...options }), logger)
    inboxes.push(opened.inbox)
    return { ...opened, lines, refusals: () => lines.filter(({ message }) => message.startsWith('Redis refuses')) }
  }
  const commandsIn = async (ms: number): Promise<number> => {
    const count = async () => Number(/total_commands_processed:(\d+)/.exec(await server.command('INFO', 'stats'))?.[1])
    const before = await count()
    await sleep(ms)
    return (await count()) - before
  }
  const handles = async ({ inbox, calls }: ReturnType<typeof open>, key: string) => {
    // A step that was refused after the key was remembered makes the sender's next try a duplicate, which is added.
    expect(['accepted', 'duplicate']).toContain(await inbox.accept(eventOf(key)))
    const call = await calls.next()
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    return call.event.key
  }

  test('needs no more than the documented rights, and warns of nothing but appendonly', async () => {
    await allow(`${keys} ${documented}`)
    const opened = open()
    expect(await handles(opened, 'one')).toBe('one')
    expect(opened.lines).toEqual([])
  })

  test('works without INFO, and says once what cannot be checked then', async () => {
    await allow(`${keys} +@all -@dangerous`)
    const opened = open()
    expect(await handles(opened, 'one')).toBe('one')
    expect(opened.lines.map(({ message }) => message)).toEqual([
      expect.stringMatching(/cannot read the settings of Redis \(allow it with \+info\)/),
    ])
  })

  test.each([
    ['a command', `${keys} ${documented} -bzpopmin`, /\+bzpopmin/],
    ['a command in scripts', `${keys} ${documented} -xadd -zadd`, /\+zadd \+xadd|\+xadd \+zadd/],
    ['scripts', `${keys} ${documented} -@scripting`, /\+eval/],
    ['every key of the queue', `~webhooks:media-webhooks:* ${documented}`, /~bull:media-webhooks:\*/],
    ['every key of the inbox', `~bull:media-webhooks:* ${documented}`, /~webhooks:media-webhooks:\*/],
  ])(
    'for want of the right to %s does not spin, names the right once, and goes on once it has it',
    async (_, rules, named) => {
      await allow(rules)
      const opened = open({ timeoutMs: 500 })
      await expect(opened.inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
      await until(async () => opened.refusals().length > 0)
      await sleep(1_000)
      expect(await commandsIn(1_000)).toBeLessThan(60)
      expect(opened.refusals()[0]?.message).toMatch(named)
      const messages = opened.refusals().map(({ message }) => message)
      expect(messages.length).toBe(new Set(messages).size)
      expect(messages.length).toBeLessThan(5)
      await allow(`${keys} ${documented}`)
      expect(await handles(opened, 'one')).toBe('one')
    },
  )

  test('while Redis cannot write its snapshot is unavailable, does not spin, and goes on by itself', async () => {
    const opened = open({ timeoutMs: 500 }, '')
    await handles(opened, 'before')
    await server.failSnapshots()
    await expect(opened.inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
    await until(async () => opened.refusals().length > 0)
    expect(await commandsIn(1_000)).toBeLessThan(60)
    expect(opened.refusals()).toHaveLength(1)
    expect(opened.refusals()[0]?.message).toMatch(/MISCONF.*cannot write to disk/)
    await server.command('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no')
    expect(await handles(opened, 'after')).toBe('after')
  })
})
