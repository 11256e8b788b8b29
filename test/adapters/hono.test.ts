import { getRequestListener } from '@hono/node-server'
import { type ExecutionContext, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { describe, expect, test } from 'vitest'
import { honoHandler } from '../../adapters/hono.ts'
import { urlToken } from '../../src/index.ts'
import { encodePayload, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { connectTo, requestHead } from '../contract/suites/adapter/connection.ts'
import { serveWebhook } from '../support/serve.ts'
import { bytes, forgery, freshBody, post, signedRequest, url, watchedReceiver, withMark } from './receivers.ts'

const path = '/webhooks/media'
const accepted = { status: 200, body: { status: 'accepted' } }
const consumed = { status: 500, body: expect.objectContaining({ code: 'body_consumed' }) }

const open = (app: Hono, options?: Parameters<typeof getRequestListener>[1]) =>
  serveWebhook(getRequestListener(app.fetch, options))

const behind = (options: Parameters<typeof watchedReceiver>[0], middleware: MiddlewareHandler) => {
  const watched = watchedReceiver(options)
  const app = new Hono().use(middleware)
  app.post(path, honoHandler(watched.receiver))
  return { ...watched, app }
}

/** A middleware that reads the body and calls `next` even when reading fails. */
const reading =
  (read: (context: Parameters<MiddlewareHandler>[0]) => Promise<unknown>): MiddlewareHandler =>
  async (context, next) => {
    await read(context).catch(() => {})
    await next()
  }

const readers: [string, MiddlewareHandler][] = [
  ['text()', reading(({ req }) => req.text())],
  ['json()', reading(({ req }) => req.json())],
  ['arrayBuffer()', reading(({ req }) => req.arrayBuffer())],
  ['blob()', reading(({ req }) => req.blob())],
  ['parseBody()', reading(({ req }) => req.parseBody())],
  ['text() of a clone', reading(({ req }) => req.raw.clone().text())],
  ['nothing, after 5 ms', reading(() => new Promise((resolve) => setTimeout(resolve, 5)))],
  ['the size, by bodyLimit', bodyLimit({ maxSize: 100_000 })],
]

describe('behind a middleware that read', () => {
  describe.each(readers)('%s', (_, middleware) => {
    test('it accepts bytes that begin with a byte order mark', async () => {
      const { app } = behind(bytes, middleware)
      expect(await post(await open(app), bytes, withMark())).toEqual(accepted)
    })

    test('it accepts the exact bytes on Node and rejects a forgery', async () => {
      const { app, handled } = behind(bytes, middleware)
      const target = await open(app)
      expect(await post(target, bytes)).toEqual(accepted)
      expect((await post(target, forgery)).status).toBe(401)
      expect(handled).toHaveLength(1)
    })

    test('it accepts the exact bytes of a Request', async () => {
      const { app } = behind(bytes, middleware)
      const { url, init } = await signedRequest(`http://host${path}`, bytes)
      expect((await app.request(url, init)).status).toBe(200)
    })

    test('it accepts a large body that arrives in pieces', async () => {
      const { app } = behind(url, middleware)
      const target = await open(app)
      const body = encodePayload(samplePayload('encoding.finished', { title: 'x'.repeat(60_000) }))
      const signed = await signedRequest(target, url)
      const connection = await connectTo(target)
      const length = String(body.byteLength)
      connection.send(requestHead('POST', signed.url, [['Content-Length', length]]))
      for (let i = 0; i < body.byteLength; i += 10_000) {
        connection.send(body.subarray(i, i + 10_000))
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
      expect((await connection.answer()).status).toBe(200)
      connection.destroy()
    })
  })

  test('a body without a length, by bodyLimit, it accepts the exact bytes', async () => {
    const { app } = behind(bytes, bodyLimit({ maxSize: 100_000 }))
    const { url, init } = await signedRequest(await open(app), bytes)
    const stream = new Blob([init.body]).stream()
    expect((await fetch(url, { ...init, body: stream, duplex: 'half' } as RequestInit)).status).toBe(200)
  })

  test.each([
    ['needs bytes', bytes],
    ['needs no bytes', url],
  ])('the raw request and left no copy, it answers 500 if the verifier %s', async (_, signer) => {
    const { app, handled, lines } = behind(
      signer,
      reading(({ req }) => req.raw.text()),
    )
    expect(await post(await open(app), signer)).toEqual(consumed)
    expect([handled.length, lines.length]).toEqual([0, 1])
  })

  test('JSON and left no bytes, as older versions of Hono do, it works with a verifier that needs none', async () => {
    const older = reading(async ({ req }) => {
      req.bodyCache.json = Promise.resolve(JSON.parse(await req.raw.text()))
    })
    expect(await post(await open(behind(url, older).app), url)).toEqual(accepted)
    expect(await post(await open(behind(bytes, older).app), bytes)).toEqual(consumed)
  })

  test('a body that fails, it still answers', async () => {
    const failed = reading(async ({ req }) => {
      const failure: unknown = Promise.reject(new Error('the sender disconnected'))
      Object.assign(req.bodyCache, { text: failure })
      await failure
    })
    const { app, reports } = behind(bytes, failed)
    expect((await post(await open(app), bytes)).status).toBe(400)
    expect(reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
  })
})

test.each(['query', 'path'] as const)(
  'shows the verifier the whole URL under app.route and a base path (%s)',
  async (place) => {
    const token = { secret: 'a token', in: place } as const
    const { receiver } = watchedReceiver({ verify: urlToken(token) })
    const routes = new Hono().post('/media/:token?', honoHandler(receiver))
    const app = new Hono().route('/webhooks', routes)
    const target = await open(app)
    expect(await post(target, { sign: signWithUrlToken(token) })).toEqual(accepted)
    expect((await post(target, forgery)).status).toBe(401)
  },
)

test('can be mounted with use', async () => {
  const { receiver } = watchedReceiver(bytes)
  expect(await post(await open(new Hono().use(path, honoHandler(receiver))), bytes)).toEqual(accepted)
})

test('keeps the headers that a middleware has set', async () => {
  const { app } = behind(bytes, async (context, next) => {
    context.header('x-before', '1')
    await next()
    context.header('x-after', '2')
  })
  const { url, init } = await signedRequest(await open(app), bytes)
  const { headers } = await fetch(url, init)
  expect([headers.get('x-before'), headers.get('x-after'), headers.get('content-type')]).toEqual([
    '1',
    '2',
    'application/json',
  ])
})

test('answers an oversized body even if the server does not clean up after requests', async () => {
  const { receiver } = watchedReceiver({ ...url, maxBodyBytes: 1_000 })
  // Once the Request object exists, its body is read as a stream.
  const app = new Hono().use(reading(async ({ req }) => req.raw.body)).post(path, honoHandler(receiver))
  const { url: target, init } = await signedRequest(await open(app, { autoCleanupIncoming: false }), url)
  const connection = await connectTo(target)
  const chunked = ['Transfer-Encoding', 'chunked'] as const
  connection.send(`${requestHead(init.method, target, [chunked])}ffff\r\n${'x'.repeat(0xffff)}\r\n`)
  expect((await connection.answer()).status).toBe(413)
  connection.destroy()
})

describe('in memory', () => {
  const inMemory = () => {
    const watched = watchedReceiver(bytes)
    return { ...watched, app: new Hono().post(path, honoHandler(watched.receiver)) }
  }

  test('works without Node and without an execution context', async () => {
    const { app } = inMemory()
    const { url, init } = await signedRequest(`http://host${path}`, bytes)
    const response = await app.request(url, init)
    expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
  })

  test('passes the handling to waitUntil of the execution context', async () => {
    const { app, handled } = inMemory()
    const promises: Promise<unknown>[] = []
    const context: ExecutionContext = {
      waitUntil(promise) {
        // The platforms' own function throws when it is not called as a method.
        expect(this).toBe(context)
        promises.push(promise)
      },
      passThroughOnException() {},
      props: {},
    }
    const { url, init } = await signedRequest(`http://host${path}`, bytes)
    expect((await app.request(url, init, {}, context)).status).toBe(200)
    expect(promises).toHaveLength(1)
    await Promise.all(promises)
    expect(handled).toHaveLength(1)
  })

  test('rejects a delivery without a body', async () => {
    const { app } = inMemory()
    const { status } = await app.request(path, { method: 'POST', headers: { 'content-type': 'application/json' } })
    expect(status).toBe(401)
  })
})

test("does not mistake other bindings for Node's request", async () => {
  const { receiver } = watchedReceiver(bytes)
  const app = new Hono().post(path, honoHandler(receiver))
  const { url, init } = await signedRequest(`http://host${path}`, bytes, freshBody())
  expect((await app.request(url, init, { incoming: {} })).status).toBe(200)
})
