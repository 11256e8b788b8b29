import { Cluster, Redis } from 'ioredis'
import pg from 'pg'
import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer, type RedisServerOptions } from '../../support/redis/redis-server.ts'
import { untyped } from '../../support/untyped.ts'

test.each([
  ['an empty text', '', /is an environment variable unset/],
  ['null', null, /is an environment variable unset/],
  ['a number', 6379, /redis:\/\//],
  ['a host and a port', 'localhost:6379', /must start with redis:\/\//],
  ['a port', '6379', /must start with redis:\/\//],
  ['the URL of something else', new URL('http://127.0.0.1'), /must start with redis:\/\//],
  ['a URL without a host', 'redis:///0', /no host/],
  ['a URL of only a port', 'redis://:6379', /no host/],
  ['a URL of a database without a number', 'redis://localhost/webhooks', /invalid path/],
  ['{ url }', { url: 'redis://localhost' }, /url.*pass the URL itself/],
  ['{ url } beside a port', { url: 'redis://localhost', port: 6379 }, /pass the URL itself/],
  ['{ hostname }', { hostname: 'redis', port: 6379 }, /call it host/],
  ['{ socket }', { socket: { host: 'redis' } }, /pass host and port themselves/],
  ['no place', {}, /must have host/],
  ['only a password', { password: 'secret' }, /must have host/],
  ['an unset host', { host: undefined, port: 6379 }, /invalid host.*unset/],
  ['an unset port', { port: untyped(undefined) }, /invalid port.*unset/],
  ['a wrong port', { host: 'redis', port: 'six' }, /invalid port/],
  ['no sentinel', { sentinels: [], name: 'main' }, /invalid sentinels/],
  ['a wrong db', { host: 'redis', db: -1 }, /db/],
  ['a db without a number', { host: 'redis', db: 'webhooks' }, /db/],
  ['a list of nodes', [{ host: 'redis', port: 7000 }], /new Cluster/],
  ['a Pool of pg', new pg.Pool(), /SQL database.*postgresInbox/],
  ['a client of node-redis', createClient(), /node-redis/],
  ['a keyPrefix', { host: 'redis', keyPrefix: 'mine:' }, /keyPrefix.*option queue/],
  ['a client with a keyPrefix', new Redis({ lazyConnect: true, keyPrefix: 'mine:' }), /keyPrefix.*option queue/],
])('bullmqInbox rejects %s as connection, and says what to give', async (_, connection, message) => {
  const error = { code: 'invalid_option', message: expect.stringMatching(message) }
  expect(() => bullmqInbox({ connection: untyped(connection) })).toThrow(expect.objectContaining(error))
  await expect(openInboxQueue({ connection: untyped(connection) })).rejects.toMatchObject(error)
})

test('bullmqInbox does not quote a URL that may have a password', () => {
  expect(() => bullmqInbox({ connection: 'rdiss://user:hunter2@redis' })).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
  )
})

describe.skipIf(!findRedis())('bullmqInbox', () => {
  async function start(options?: RedisServerOptions) {
    const server = await RedisServer.start(options)
    onTestFinished(() => server.remove())
    return server
  }
  function open(options: BullmqInboxOptions) {
    const { logger, lines } = recordingLogger('warn')
    const opened = openInbox(bullmqInbox({ timeoutMs: 500, ...options }), logger)
    onTestFinished(async () => void (await opened.inbox.close({ timeoutMs: 200 })))
    return { ...opened, lines }
  }
  const handles = async ({ inbox, calls }: ReturnType<typeof open>) => {
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    ;(await calls.next()).finish()
    await until(async () => (await inbox.stats()).running === 0)
  }

  test.each([
    ['a URL', (server: RedisServer) => new URL(`${server.url}/3`)],
    ['a text', (server: RedisServer) => `${server.url}/3`],
    ['options with texts', ({ port }: RedisServer) => ({ host: '127.0.0.1', port: untyped(`${port}`), db: 3 })],
    ['a client', ({ port }: RedisServer) => new Redis({ port, db: 3, maxRetriesPerRequest: 1, lazyConnect: true })],
  ])('connects where %s leads to, and leaves a client alone', async (_, connectionOf) => {
    const server = await start()
    const connection = connectionOf(server)
    await handles(open({ connection }))
    expect(await server.command('INFO', 'keyspace')).toMatch(/^db3:/m)
    expect(await server.command('INFO', 'keyspace')).not.toMatch(/^db0:/m)
    if (connection instanceof Redis) expect(connection.status).toBe('wait')
  })

  test('handles events in a cluster, whose client it duplicates, if the name of the queue has a hash tag', async () => {
    const { port } = await start({ cluster: true })
    const cluster = new Cluster([{ host: '127.0.0.1', port }])
    onTestFinished(() => cluster.disconnect())
    await handles(open({ connection: cluster, queue: '{media-webhooks}' }))
  })

  describe('in a cluster of three nodes', () => {
    const queue = '{media-webhooks}'
    const slots = [
      [0, 5_460],
      [5_461, 10_922],
      [10_923, 16_383],
    ] as const

    async function startCluster() {
      const nodes = await Promise.all(slots.map((each) => start({ cluster: each })))
      await RedisServer.join(nodes)
      const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
      onTestFinished(() => cluster.disconnect())
      return { nodes, cluster }
    }

    test('the URL of any node opens the queue for inspection', async () => {
      const { nodes, cluster } = await startCluster()
      const { inbox: receiving } = open({ connection: cluster, queue, handles: false })
      expect(await receiving.accept(eventOf('one'))).toBe('accepted')
      for (const { url } of nodes) {
        const inbox = await openInboxQueue({ connection: url, queue })
        expect((await inbox.events?.list({ limit: 5 }))?.events.length).toBe(1)
        await inbox.pauses?.pause({})
        expect((await inbox.pauses?.list())?.length).toBe(1)
        await inbox.close()
      }
    })

    test('a receiver that got the URL of a wrong node logs to pass the cluster', async () => {
      const { nodes, cluster } = await startCluster()
      await handles(open({ connection: cluster, queue }))
      const wrong = nodes.map(({ url }) => open({ connection: url, queue }))
      await until(
        async () =>
          wrong.filter(({ lines }) => lines.some(({ message }) => message.includes('Cluster of ioredis'))).length === 2,
      )
    })
  })

  test('says at the start that a cluster needs a hash tag in the name of the queue', async () => {
    const { url } = await start({ cluster: true })
    const { inbox, lines } = open({ connection: url })
    await until(async () => lines.some(({ message }) => message.includes("hash tag, such as '{media-webhooks}'")))
    await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
    await handles(open({ connection: url, queue: '{media-webhooks}' }))
  })

  test('is unavailable with a database that is not there, and writes to no other', async () => {
    const server = await start()
    const { inbox, lines } = open({ connection: { port: server.port, db: 77 } })
    await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
    expect(lines.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^there is no connection to Redis \(.*DB index is out of range\)/),
    ])
    expect(await server.command('DBSIZE')).toBe('0')
  })

  test('waits for a script that blocks Redis as long as there is time, and then says why it is unavailable', async () => {
    const server = await start({ settings: { 'busy-reply-threshold': '50' } })
    const block = (ms: number) =>
      server.command(
        'EVAL',
        `local t = redis.call('TIME') repeat local n = redis.call('TIME')
        until (n[1] - t[1]) * 1000 + (n[2] - t[2]) / 1000 > ${ms}`,
        '0',
      )
    const { inbox, lines } = open({ connection: server.url, timeoutMs: 2_000, handles: false })
    expect(await inbox.accept(eventOf('before'))).toBe('accepted')
    const blocked = block(700)
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    await blocked
    const longer = block(3_000)
    await new Promise((resolve) => setTimeout(resolve, 150))
    await expect(inbox.accept(eventOf('two'))).rejects.toMatchObject({
      code: 'unavailable',
      cause: { message: expect.stringMatching(/^BUSY/) },
    })
    expect(lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/BUSY.*SCRIPT KILL/))
    await longer
  })
})
