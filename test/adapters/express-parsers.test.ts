import { gzipSync } from 'node:zlib'
import type { RequestHandler } from 'express'
import { describe, expect, test } from 'vitest'
import { basicAuth } from '../../src/index.ts'
import { encodePayload, samplePayload, signWithBasicAuth } from '../../src/testing/index.ts'
import { appBehind, post, signed, versions } from './express-app.ts'
import { bytes, forgery, freshBody, url, withMark } from './receivers.ts'

const accepted = { status: 'accepted' }

describe.each(versions)('%s', (_, create) => {
  const keepRawBody: RequestHandler = create.json({
    verify: (request, _, buffer) => Object.assign(request, { rawBody: buffer }),
  })

  describe('takes the bytes', () => {
    test.each<[string, RequestHandler[]]>([
      ['after express.raw', [create.raw({ type: '*/*' })]],
      ['after express.raw of another type', [create.raw()]],
      ['after express.text', [create.text({ type: '*/*' })]],
      ['after express.text of another type', [create.text()]],
      ['after express.json that kept rawBody', [keepRawBody]],
      ['after express.urlencoded', [create.urlencoded({ extended: true })]],
      ['after a middleware that waited', [(_request, _response, next) => void setTimeout(next, 5)]],
    ])('%s', async (_, parsers) => {
      const { app, handled } = appBehind(create, bytes, ...parsers)
      await post(app, await signed(bytes)).expect(200, accepted)
      await post(app, await signed(forgery)).expect(401)
      expect(handled).toHaveLength(1)
    })

    test('that begin with a byte order mark, which express.text drops', async () => {
      const { app, handled } = appBehind(create, bytes, create.text({ type: '*/*' }))
      await post(app, await signed(bytes, { body: withMark() })).expect(200, accepted)
      expect(handled).toHaveLength(1)
    })

    test('that express.raw decoded', async () => {
      const { app, handled } = appBehind(create, bytes, create.raw({ type: '*/*' }))
      const { url, headers, body } = await signed(bytes)
      const gzipped = { url, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) }
      await post(app, gzipped).expect(200, accepted)
      expect(handled).toHaveLength(1)
    })

    test('up to the limit only, even when a parser has read them', async () => {
      const { app, handled } = appBehind(create, { ...bytes, maxBodyBytes: 10 }, create.raw({ type: '*/*' }))
      await post(app, await signed(bytes)).expect(413)
      expect(handled).toHaveLength(0)
    })
  })

  describe('behind express.json()', () => {
    test('works with a verifier that needs no bytes', async () => {
      const { app, handled, lines } = appBehind(create, url, create.json())
      await post(app, await signed(url)).expect(200, accepted)
      await post(app, await signed(forgery)).expect(401)
      expect(handled).toHaveLength(1)
      expect(lines).toHaveLength(1)
    })

    test('rejects a body that is larger once it is inflated than the receiver allows', async () => {
      const { app, handled } = appBehind(create, { ...url, maxBodyBytes: 1_000 }, create.json())
      const body = encodePayload(samplePayload('encoding.finished', { title: 'é'.repeat(450) }))
      const { headers, ...rest } = await signed(url, { body })
      const gzipped = { ...rest, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) }
      expect(gzipped.body.byteLength).toBeLessThan(1_000)
      await post(app, gzipped).expect(413)
      expect(handled).toHaveLength(0)
    })

    test('works with Basic credentials', async () => {
      const credentials = { username: 'media', password: 'p' }
      const { app } = appBehind(create, { verify: basicAuth(credentials) }, create.json())
      await post(app, await signed({ sign: signWithBasicAuth(credentials) })).expect(200, accepted)
    })

    test('answers 500 immediately with a verifier that needs the bytes, and logs the fix in one line', async () => {
      const { app, lines, handled } = appBehind(create, bytes, create.json())
      await post(app, await signed(bytes)).expect(500, /"code":"body_consumed"/)
      expect(lines).toMatchObject([
        { level: 'error', message: expect.stringMatching(/hmacSignature needs the exact bytes.+express\.raw/) },
      ])
      expect(handled).toHaveLength(0)
    })

    test.each([
      ['a whole body', freshBody()],
      ['an empty object', new TextEncoder().encode('{}')],
      ['no body', new Uint8Array()],
      ['a body that is not JSON', new TextEncoder().encode('{')],
    ])('never acknowledges a forged delivery of %s', async (_, body) => {
      const { app, handled } = appBehind(create, bytes, create.json())
      const { status } = await post(app, await signed(forgery, { body }))
      expect(status).toBeGreaterThanOrEqual(400)
      expect(handled).toHaveLength(0)
    })
  })

  test.each([
    ['needs bytes', bytes],
    ['needs no bytes', url],
  ])('answers 500 behind a middleware that discarded the body, if the verifier %s', async (_, signer) => {
    const drain: RequestHandler = (request, _response, next) => void request.resume().once('end', () => next())
    const { app, handled, lines } = appBehind(create, signer, drain)
    await post(app, await signed(signer)).expect(500, /"code":"body_consumed"/)
    expect([handled.length, lines.length]).toEqual([0, 1])
  })
})
