import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, memoryInbox, unverified } from '../../src/index.ts'
import { type Health, health } from '../../src/operate/health.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { postgresTests } from '../inbox/postgres/postgres-tests.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { freePort } from '../support/free-port.ts'
import { express4, fastify4, koa2 } from '../support/mounts.ts'
import { ownTime } from '../support/own-time.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { serve } from '../support/serve.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'

type Mount = (probes: Health) => Promise<string>

const inExpress =
  (create: typeof express): Mount =>
  ({ live, ready }) => {
    const app = create()
    app.get('/live', live.node).get('/ready', ready.node)
    return serve(app)
  }

const inFastify =
  (create: typeof fastify): Mount =>
  async (probes) => {
    const app = create()
    for (const name of ['live', 'ready'] as const)
      app.get(`/${name}`, (request, reply) => probes[name].node(request.raw, reply.hijack().raw))
    onTestFinished(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  }

const inKoa =
  (App: typeof Koa): Mount =>
  (probes) => {
    const app = new App()
    app.use((context, next) => {
      const name = context.path.slice(1)
      if (name !== 'live' && name !== 'ready') return next()
      context.respond = false
      return probes[name].node(context.req, context.res)
    })
    return serve(app.callback())
  }

const mounts: Record<string, Mount> = {
  'node:http': ({ live, ready }) =>
    serve((request, response) => (request.url === '/live' ? live : ready).node(request, response)),
  'Express 5': inExpress(express),
  'Express 4': inExpress(express4),
  'Fastify 5': inFastify(fastify),
  'Fastify 4': inFastify(fastify4),
  'Koa 3': inKoa(Koa),
  'Koa 2': inKoa(koa2),
  Hono: ({ live, ready }) => {
    const app = new Hono().get('/live', (c) => live.fetch(c.req.raw)).get('/ready', (c) => ready.fetch(c.req.raw))
    return serve(getRequestListener(app.fetch))
  },
  fetch: ({ live, ready }) =>
    serve(getRequestListener((asked) => (new URL(asked.url).pathname === '/live' ? live : ready).fetch(asked))),
}

function open(inbox: InboxDefinition = memoryInbox()) {
  const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 0 })))
  return receiver
}

async function ask(url: string) {
  const response = await fetch(url)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  return [response.status, await response.json()]
}

/** Asks a probe without a server. */
async function asked(probe: Health['ready']) {
  const response = await probe.fetch()
  return [response.status, await response.json()]
}

const live = [200, { status: 'live' }]
const ready = [200, { status: 'ready' }]
const closing = [503, { status: 'closing', reason: 'the receiver is closing' }]
const reason = 'the inbox is not open yet, or cannot reach its storage'
const unavailable = [503, { status: 'unavailable', reason }]

describe.each(Object.entries(mounts))('in %s', (_, mount) => {
  test('a receiver is live and ready, and no longer ready from the begin of its close on', async () => {
    const receiver = open()
    const { promise: end, resolve: finish } = signalled()
    receiver.onAny(() => end)
    const url = await mount(health(receiver))
    expect([await ask(`${url}/live`), await ask(`${url}/ready`)]).toEqual([live, ready])
    await deliver(receiver, samplePayload('encoding.finished'))
    const closed = receiver.close()
    expect([await ask(`${url}/live`), await ask(`${url}/ready`)]).toEqual([live, closing])
    finish()
    await closed
    expect([await ask(`${url}/live`), await ask(`${url}/ready`)]).toEqual([live, closing])
  })

  test('HEAD is answered without a body', async () => {
    const url = await mount(health(open()))
    for (const name of ['live', 'ready']) {
      const response = await fetch(`${url}/${name}`, { method: 'HEAD' })
      expect([response.status, await response.text()]).toEqual([200, ''])
    }
  })
})

test('a SQLite inbox is ready', async () => {
  expect(await asked(health(open(sqliteInbox({ path: await freshPath() }))).ready)).toEqual(ready)
})

test('a receiver whose database was never there is live, not ready, and tells no secret', async () => {
  const connection = `postgres://a-user:a-secret@127.0.0.1:${await freePort()}/a-database`
  const probes = health(open(postgresInbox({ connection })))
  expect([await asked(probes.live), await asked(probes.ready)]).toEqual([live, unavailable])
})

test('several receivers are ready if each of them is', async () => {
  const receivers = [open(), open()]
  const probes = health(receivers)
  expect(await asked(probes.ready)).toEqual(ready)
  await receivers[1]?.close()
  expect(await asked(probes.ready)).toEqual(closing)
})

test('a storage that never answers is answered for within a second, and asked once by any number of probes', async () => {
  let asks = 0
  const definition = memoryInbox()
  const inbox: InboxDefinition = {
    ...definition,
    open: (host) =>
      Object.assign(definition.open(host), {
        ready() {
          asks++
          return new Promise<void>(() => {})
        },
      }),
  }
  const probes = health(open(inbox))
  const elapsed = ownTime()
  expect(await Promise.all(Array.from({ length: 20 }, () => asked(probes.ready)))).toEqual(Array(20).fill(unavailable))
  expect(elapsed()).toBeLessThan(1_000)
  expect(asks).toBe(1)
})

describe.skipIf(!findPostgres())('while Postgres', () => {
  const postgres = postgresTests()

  test('is away, a receiver is live and not ready, and it is ready again afterwards', async () => {
    const receiver = postgres.receiver({ timeoutMs: 500 })
    receiver.onAny(() => {})
    await receiver.ready()
    const probes = health(receiver)
    expect(await asked(probes.ready)).toEqual(ready)
    await postgres.server.stop('SIGKILL')
    expect([await asked(probes.ready), await asked(probes.live)]).toEqual([unavailable, live])
    expect(await deliver(receiver, samplePayload('encoding.finished'))).toMatchObject({ status: 503 })
    await postgres.server.restart()
    await expect.poll(() => asked(probes.ready)).toEqual(ready)
  })
})

describe.skipIf(!findRedis())('while Redis', () => {
  test('is away, a receiver is live and not ready, and it is ready again afterwards', async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.remove())
    const probes = health(open(bullmqInbox({ connection: { port: server.port } })))
    await expect.poll(() => asked(probes.ready)).toEqual(ready)
    await server.stop()
    expect([await asked(probes.ready), await asked(probes.live)]).toEqual([unavailable, live])
    await server.restart()
    await expect.poll(() => asked(probes.ready)).toEqual(ready)
  })
})

test.each([
  ['nothing', undefined],
  ['createReceiver without its parentheses', createReceiver],
  ['an empty list', []],
])('health given %s says what it takes', (_, given) => {
  expect(() => health(given as never)).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(/^health: give it a receiver/) }),
  )
})
