/** A use of an entry, for each bundler to bundle. */
export interface Bundled {
  /** A program that uses the entry and prints its result. */
  readonly program: string
  /** Peers that stay outside the bundle: bullmq reads its scripts from files, libsql is a native module. */
  readonly external?: readonly string[]
  readonly prints: string
}

const delivery = `{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"type":"encoding.finished","media_id":"a-film"}' }`

const receiver = `
  import { createReceiver, urlToken } from 'media-webhooks'
  const receiver = createReceiver({ verify: urlToken({ secret: 'a-secret' }) })
    .on('encoding.finished', ({ mediaId }) => console.log('handled ' + mediaId))`

const overNodeHttp = (handler: string) => `
  import { createServer } from 'node:http'
  const server = createServer(${handler}(receiver)).listen(0, '127.0.0.1', async () => {
    await fetch('http://127.0.0.1:' + server.address().port + '/?token=a-secret', ${delivery})
    await receiver.close()
    server.closeAllConnections()
    server.close()
  })`

/** Programs by the entry that they use. */
export const bundles: Record<string, Bundled> = {
  '.': {
    program: `${receiver}
      const headers = new Headers(${delivery}.headers)
      const encoded = new TextEncoder().encode(${delivery}.body)
      receiver.receive({ method: 'POST', url: '/?token=a-secret', headers, body: encoded })`,
    prints: 'handled a-film',
  },
  './express': {
    program: `${receiver}
      import { expressHandler } from 'media-webhooks/express'
      ${overNodeHttp('expressHandler')}`,
    prints: 'handled a-film',
  },
  './fastify': {
    program: `${receiver}
      import fastify from 'fastify'
      import { fastifyReceiver } from 'media-webhooks/fastify'
      const app = fastify()
      app.register(fastifyReceiver, { receiver, url: '/' })
      app.inject({ url: '/?token=a-secret', payload: ${delivery}.body, ...${delivery} }).then(() => app.close())`,
    // It loads modules by names that bundlers do not see.
    external: ['fastify'],
    prints: 'handled a-film',
  },
  './koa': {
    program: `${receiver}
      import Koa from 'koa'
      import { koaHandler } from 'media-webhooks/koa'
      const app = new Koa().use(koaHandler(receiver))
      ${overNodeHttp('((receiver) => app.callback())')}`,
    external: ['koa'],
    prints: 'handled a-film',
  },
  './hono': {
    program: `${receiver}
      import { Hono } from 'hono'
      import { honoHandler } from 'media-webhooks/hono'
      new Hono().post('/', honoHandler(receiver)).request('/?token=a-secret', ${delivery})`,
    prints: 'handled a-film',
  },
  './fetch': {
    program: `${receiver}
      import { fetchHandler } from 'media-webhooks/fetch'
      fetchHandler(receiver)(new Request('http://127.0.0.1/?token=a-secret', ${delivery}))`,
    prints: 'handled a-film',
  },
  './aws-lambda': {
    program: `
      import { createReceiver, lruStore, urlToken } from 'media-webhooks'
      import { lambdaHandler, sqsHandler } from 'media-webhooks/aws-lambda'
      import { queueInbox } from 'media-webhooks/inbox/queue'
      const Records = []
      const attributes = { ApproximateReceiveCount: '1' }
      const send = (message) => Records.push({ messageId: '1', body: JSON.stringify(message), attributes, eventSourceARN: 'q' })
      const receiver = createReceiver({
        verify: urlToken({ secret: 'a-secret' }),
        inbox: queueInbox({ send, store: lruStore() }),
        logger: { debug() {}, info() {}, warn() {}, error() {} },
      }).on('encoding.finished', ({ mediaId }) => console.log('handled ' + mediaId))
      const { body, method, headers } = ${delivery}
      const event = { rawPath: '/', rawQueryString: 'token=a-secret', headers, body, requestContext: { http: { method } } }
      lambdaHandler(receiver)(event).then(() => sqsHandler(receiver)({ Records }))`,
    prints: 'handled a-film',
  },
  './node': {
    program: `${receiver}
      import { nodeHandler } from 'media-webhooks/node'
      ${overNodeHttp('nodeHandler')}`,
    prints: 'handled a-film',
  },
  './inbox/sqlite': {
    program: `
      import { createReceiver, unverified } from 'media-webhooks'
      import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
      const inbox = sqliteInbox({ path: 'inbox.db' })
      const receiver = createReceiver({ verify: unverified(), inbox }).on('encoding.finished', async ({ mediaId }) => {
        console.log('handled ' + mediaId)
        setImmediate(() => receiver.close())
      })
      const headers = new Headers(${delivery}.headers)
      receiver.receive({ method: 'POST', url: '/', headers, body: new TextEncoder().encode(${delivery}.body) })`,
    // The package loads node:sqlite, or libsql from node_modules, when it opens a file; bundlers do not see it.
    external: ['libsql'],
    prints: 'handled a-film',
  },
  './inbox/bullmq': {
    program: `
      import { bullmqInbox } from 'media-webhooks/inbox/bullmq'
      try { bullmqInbox({}) } catch ({ name, code }) { console.log(name, code) }`,
    external: ['bullmq', 'ioredis'],
    prints: 'WebhookError invalid_option',
  },
  './inbox/postgres': {
    program: `
      import { postgresInbox } from 'media-webhooks/inbox/postgres'
      try { postgresInbox({}) } catch ({ name, code }) { console.log(name, code) }`,
    external: ['pg'],
    prints: 'WebhookError invalid_option',
  },
  './inbox/pglite': {
    program: `
      import { pgliteInbox } from 'media-webhooks/inbox/pglite'
      try { pgliteInbox({}) } catch ({ name, code }) { console.log(name, code) }`,
    external: ['pg'],
    prints: 'WebhookError invalid_option',
  },
  './inbox/queue': {
    program: `
      import { createReceiver, lruStore, unverified } from 'media-webhooks'
      import { queueInbox } from 'media-webhooks/inbox/queue'
      const receiver = createReceiver({ verify: unverified(), inbox: queueInbox({ send() {}, store: lruStore() }) })
      receiver.handle('no message').then(({ status }) => console.log(status))`,
    prints: 'dead',
  },
  './cloudflare': {
    program: `
      import { durableObjectInbox } from 'media-webhooks/cloudflare'
      try { durableObjectInbox({}) } catch ({ name, code }) { console.log(name, code) }`,
    prints: 'WebhookError invalid_option',
  },
  './opentelemetry': {
    program: `${receiver.replace("secret: 'a-secret' }) }", "secret: 'a-secret' }), telemetry: openTelemetry() }")}
      import { openTelemetry } from 'media-webhooks/opentelemetry'
      import { fetchHandler } from 'media-webhooks/fetch'
      fetchHandler(receiver)(new Request('http://127.0.0.1/?token=a-secret', ${delivery}))`,
    prints: 'handled a-film',
  },
  './idempotency/redis': {
    program: `
      import { redisStore } from 'media-webhooks/idempotency/redis'
      try { redisStore({}) } catch ({ name, code }) { console.log(name, code) }`,
    prints: 'WebhookError invalid_option',
  },
  './client': {
    program: `
      import { createClient } from 'media-webhooks/client'
      const client = createClient({ accessToken: 'a-token' }, { baseUrl: 'http://127.0.0.1:1', retries: 0 })
      client.webhook.list().catch(({ name, code }) => console.log(name, code))`,
    prints: 'ApiError connection',
  },
  './dashboard': {
    program: `${receiver}
      import { dashboard } from 'media-webhooks/dashboard'
      const page = dashboard(receiver, { authorize: () => true })
      const get = async (path) => (await page.fetch(new Request('http://127.0.0.1' + path))).text()
      Promise.all(['/', '/style.css', '/page.js'].map(get)).then(([html, style, script]) =>
        console.log(html.includes('Overview'), style.includes('.causes'), script.includes('morph')))`,
    prints: 'true true true',
  },
  './health': {
    program: `${receiver}
      import { health } from 'media-webhooks/health'
      health(receiver).ready.fetch().then(async (response) => console.log(response.status, await response.text()))`,
    prints: '200 {"status":"ready"}',
  },
  './emulator': {
    program: `
      import { createEmulator } from 'media-webhooks/emulator'
      createEmulator().then(async (emulator) => {
        const get = async (path) => (await fetch(emulator.url + path)).text()
        console.log((await get('/page/style.css')).includes('{'), (await get('/page/morph.js')).includes('export'))
        await emulator.close()
      })`,
    prints: 'true true',
  },
  './testing': {
    program: `${receiver}
      import { deliver, samplePayload, signWithUrlToken } from 'media-webhooks/testing'
      deliver(receiver, samplePayload('encoding.finished', { media_id: 'a-film' }), { sign: signWithUrlToken({ secret: 'a-secret' }) })`,
    prints: 'handled a-film',
  },
}
