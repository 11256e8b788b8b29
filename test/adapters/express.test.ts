import { gzipSync } from 'node:zlib'
import express, { type RequestHandler } from 'express'
import { describe, expect, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { basicAuth, urlToken } from '../../src/index.ts'
import { signWithBasicAuth, signWithUrlToken } from '../../src/testing/index.ts'
import { express4 } from './mounts.ts'
import { open as serveUntilEnd } from './opened.ts'
import { bytes, forgery, freshBody, post, signedRequest, url, watchedReceiver } from './receivers.ts'

const path = '/webhooks/media'
const accepted = { status: 200, body: { status: 'accepted' } }
const consumed = { status: 500, body: expect.objectContaining({ code: 'body_consumed' }) }

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
])('%s', (_, create) => {
  async function open(mount: (app: ReturnType<typeof express>) => void) {
    const app = create()
    mount(app)
    return serveUntilEnd(app)
  }

  const behind = (options: Parameters<typeof watchedReceiver>[0], ...parsers: RequestHandler[]) => {
    const watched = watchedReceiver(options)
    return { ...watched, open: () => open((app) => app.post(path, ...parsers, expressHandler(watched.receiver))) }
  }

  describe('mounted', () => {
    test('by post, leaves other methods to the application', async () => {
      const { open } = behind(bytes)
      const target = await open()
      expect(await post(target, bytes)).toEqual(accepted)
      expect((await fetch(target)).status).toBe(404)
    })

    test('by use, on its path and without one', async () => {
      const { receiver, handled } = watchedReceiver(bytes)
      expect(await post(await open((app) => app.use(path, expressHandler(receiver))), bytes)).toEqual(accepted)
      expect(await post(await open((app) => app.use(expressHandler(receiver))), bytes)).toEqual(accepted)
      expect(handled).toHaveLength(2)
    })

    test.each(['query', 'path'] as const)('under a router, shows the verifier the whole URL (%s)', async (place) => {
      const token = { secret: 'a token', in: place } as const
      const { receiver } = watchedReceiver({ verify: urlToken(token) })
      const target = await open((app) => {
        const router = create.Router()
        router.use('/media', expressHandler(receiver))
        app.use('/webhooks', router)
      })
      expect(await post(target, { sign: signWithUrlToken(token) })).toEqual(accepted)
      expect((await post(target, forgery)).status).toBe(401)
    })

    test('where the path of the mount is the token', async () => {
      const { receiver } = watchedReceiver({ verify: urlToken({ secret: 'media', in: 'path' }) })
      expect(await post(await open((app) => app.use(path, expressHandler(receiver))), forgery)).toEqual(accepted)
    })
  })

  describe('takes the bytes', () => {
    const keepRawBody: RequestHandler = create.json({
      verify: (request, _, buffer) => Object.assign(request, { rawBody: buffer }),
    })

    test.each<[string, RequestHandler[]]>([
      ['after express.raw', [create.raw({ type: '*/*' })]],
      ['after express.raw of another type', [create.raw()]],
      ['after express.text', [create.text({ type: '*/*' })]],
      ['after express.text of another type', [create.text()]],
      ['after express.json that kept rawBody', [keepRawBody]],
      ['after express.urlencoded', [create.urlencoded({ extended: true })]],
      ['after a middleware that waited', [(_request, _response, next) => void setTimeout(next, 5)]],
    ])('%s', async (_, parsers) => {
      const { open, handled } = behind(bytes, ...parsers)
      const target = await open()
      expect(await post(target, bytes)).toEqual(accepted)
      expect((await post(target, forgery)).status).toBe(401)
      expect(handled).toHaveLength(1)
    })

    test('that express.raw decoded', async () => {
      const { open, handled } = behind(bytes, create.raw({ type: '*/*' }))
      const { url, init } = await signedRequest(await open(), bytes)
      init.headers.set('content-encoding', 'gzip')
      const response = await fetch(url, { ...init, body: gzipSync(init.body) })
      expect([response.status, handled.length]).toEqual([200, 1])
    })

    test('only as far as the limit, also when a parser read them', async () => {
      const { open, handled } = behind({ ...bytes, maxBodyBytes: 10 }, create.raw({ type: '*/*' }))
      expect((await post(await open(), bytes)).status).toBe(413)
      expect(handled).toHaveLength(0)
    })
  })

  describe('behind express.json()', () => {
    test('works with a verifier that needs no bytes', async () => {
      const { open, handled, lines } = behind(url, create.json())
      const target = await open()
      expect(await post(target, url)).toEqual(accepted)
      expect((await post(target, forgery)).status).toBe(401)
      expect(handled).toHaveLength(1)
      expect(lines).toHaveLength(1)
    })

    test('works with Basic credentials', async () => {
      const credentials = { username: 'media', password: 'p' }
      const { open } = behind({ verify: basicAuth(credentials) }, create.json())
      expect(await post(await open(), { sign: signWithBasicAuth(credentials) })).toEqual(accepted)
    })

    test('answers 500 at once with one that needs them, and logs how to mend it in one line', async () => {
      const { open, lines, handled } = behind(bytes, create.json())
      expect(await post(await open(), bytes)).toEqual(consumed)
      expect(lines).toEqual([
        { level: 'error', message: expect.stringMatching(/hmacSignature needs its exact bytes.+express\.raw/) },
      ])
      expect(handled).toHaveLength(0)
    })

    test('never acknowledges a forged delivery', async () => {
      const { open, handled } = behind(bytes, create.json())
      const target = await open()
      for (const body of [freshBody(), new TextEncoder().encode('{}'), new Uint8Array()]) {
        expect((await post(target, forgery, body)).status).toBeGreaterThanOrEqual(400)
      }
      expect(handled).toHaveLength(0)
    })
  })

  test.each([
    ['needs bytes', bytes],
    ['needs none', url],
  ])('answers 500 behind a middleware that left nothing of the body, where the verifier %s', async (_, signer) => {
    const drain: RequestHandler = (request, _response, next) => void request.resume().once('end', () => next())
    const { open, handled, lines } = behind(signer, drain)
    expect(await post(await open(), signer)).toEqual(consumed)
    expect([handled.length, lines.length]).toEqual([0, 1])
  })

  test('leaves an answer that a middleware gave meanwhile as it is', async () => {
    const { open } = behind(bytes, (_request, response, next) => {
      response.status(418).json({})
      next()
    })
    expect((await post(await open(), bytes)).status).toBe(418)
  })
})
