import type { ErrorRequestHandler, RequestHandler } from 'express'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { urlToken } from '../../src/index.ts'
import { encodePayload, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { appBehind, path, post, signed, versions } from './express-app.ts'
import { bytes, forgery, watchedReceiver } from './receivers.ts'

const accepted = { status: 'accepted' }

/** Handlers that set a status of their own when the adapter calls `next`, with or without an error. */
const handedOn: RequestHandler = (_request, response) => void response.status(404).end()
const thrown: ErrorRequestHandler = (_error, _request, response, _next) => void response.status(599).end()

describe.each(versions)('%s', (_, create) => {
  describe('mounted', () => {
    test('by post, leaves other methods and paths to the application', async () => {
      const { app, handled } = appBehind(create, bytes)
      await post(app, await signed(bytes)).expect(200, accepted)
      await request(app).get(path).expect(404)
      await post(app, { ...(await signed(bytes)), url: '/webhooks/other' }).expect(404)
      expect(handled).toHaveLength(1)
    })

    test.each([
      ['on its path', path],
      ['on a part of its path', '/webhooks'],
    ])('by use, %s', async (_, mountPath) => {
      const { receiver, handled } = watchedReceiver(bytes)
      const app = create().use(mountPath, expressHandler(receiver))
      await post(app, await signed(bytes)).expect(200, accepted)
      await request(app).get(path).expect(405).expect('allow', 'POST')
      await request(app).get('/').expect(404)
      expect(handled).toHaveLength(1)
    })

    test('by use without a path', async () => {
      const { receiver, handled } = watchedReceiver(bytes)
      const app = create().use(expressHandler(receiver))
      await post(app, await signed(bytes)).expect(200, accepted)
      await post(app, { ...(await signed(bytes)), url: '/' }).expect(200, accepted)
      expect(handled).toHaveLength(2)
    })

    test('on a router, which keeps its other routes', async () => {
      const { receiver, handled } = watchedReceiver(bytes)
      const router = create.Router()
      router.post('/media', expressHandler(receiver))
      router.get('/health', (_request, response) => void response.json({ up: true }))
      const app = create().use('/webhooks', router)
      await post(app, await signed(bytes)).expect(200, accepted)
      await request(app).get('/webhooks/health').expect(200, { up: true })
      expect(handled).toHaveLength(1)
    })

    test.each(['query', 'path'] as const)('under a router, shows the verifier the whole URL (%s)', async (place) => {
      const token = { secret: 'a token', in: place } as const
      const { receiver } = watchedReceiver({ verify: urlToken(token) })
      const router = create.Router().use('/media', expressHandler(receiver))
      const app = create().use('/webhooks', router)
      await post(app, await signed({ sign: signWithUrlToken(token) })).expect(200, accepted)
      await post(app, await signed(forgery)).expect(401)
    })

    test('on a path that is the token', async () => {
      const { receiver } = watchedReceiver({ verify: urlToken({ secret: 'media', in: 'path' }) })
      const app = create().use(path, expressHandler(receiver))
      await post(app, await signed(forgery)).expect(200, accepted)
    })

    test('before the parsers of the application, leaves bodies of other routes to them', async () => {
      const { app, handled } = appBehind(create, bytes)
      app.use(create.json())
      app.post('/echo', (request, response) => void response.json(request.body))
      await post(app, await signed(bytes)).expect(200, accepted)
      await request(app).post('/echo').send({ a: 1 }).expect(200, { a: 1 })
      expect(handled).toHaveLength(1)
    })
  })

  describe('answers', () => {
    const failing = { 'encoding.finished': () => Promise.reject(new Error('not for the sender')) }

    test('a duplicate and an event without a handler with 200', async () => {
      const { app, handled } = appBehind(create, bytes)
      const delivery = await signed(bytes)
      await post(app, delivery).expect(200, accepted)
      await post(app, delivery).expect(200, { status: 'duplicate' })
      const other = await signed(bytes, { body: encodePayload(samplePayload('file.received')) })
      await post(app, other).expect(200, { status: 'ignored' })
      expect(handled).toHaveLength(1)
    })

    test.each([
      ['unauthorized', 401, {}, () => signed(forgery)],
      ['malformed', 400, {}, () => signed(bytes, { body: new TextEncoder().encode('[1]') })],
      ['malformed', 400, {}, () => signed(bytes, { body: new Uint8Array() })],
      ['unsupported_media_type', 415, {}, () => signed(bytes, { headers: { 'content-type': 'text/plain' } })],
      ['too_large', 413, { maxBodyBytes: 10 }, () => signed(bytes)],
      ['handler_failed', 500, { ack: 'handled', handlers: failing } as const, () => signed(bytes)],
    ])('%s with %i, in JSON, and hands nothing on to the application', async (code, status, options, delivery) => {
      const { app } = appBehind(create, { ...bytes, ...options })
      app.use(handedOn, thrown)
      const response = await post(app, await delivery())
        .expect(status)
        .expect('content-type', 'application/json')
      expect(response.body).toEqual({ status: 'error', code, message: expect.any(String) })
      expect(response.text).not.toContain('not for the sender')
    })

    test('503 with Retry-After once the receiver is closed', async () => {
      const { app, receiver } = appBehind(create, bytes)
      await receiver.close()
      const response = await post(app, await signed(bytes))
        .expect(503)
        .expect('retry-after', /^[0-9]+$/)
      expect(response.body).toMatchObject({ status: 'error', code: 'closing' })
    })

    test('nothing after a middleware that has already answered', async () => {
      const { app } = appBehind(create, bytes, (_request, response, next) => {
        response.status(418).json({})
        next()
      })
      await post(app, await signed(bytes)).expect(418, {})
    })
  })
})
