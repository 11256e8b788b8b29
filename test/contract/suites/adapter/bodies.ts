import { encoder } from '../../../../src/internal/utf8.ts'
import type { Runner } from '../../../../src/testing/runner.ts'
import { signWithHmac } from '../../../../src/testing/signers.ts'
import { hmacSignature } from '../../../../src/verify/hmac-signature.ts'
import { type Connection, chunk, type Fields, lastChunk, requestHead } from './connection.ts'
import { bodyOfLength, type Fixture, fixtures, freshBody, type MountAdapter } from './fixture.ts'

const limit = 1_024
const json: Fields = [['Content-Type', 'application/json']]
const chunked: Fields = [...json, ['Transfer-Encoding', 'chunked']]
const lengthOf = (bytes: number): Fields => [...json, ['Content-Length', String(bytes)]]

const acceptedTypes = [
  '',
  'application/json',
  'application/json;',
  'application/json; charset=utf-8',
  'Application/JSON;charset=UTF-8',
  'application/cloudevents+json',
]
const rejectedTypes = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=b',
  'text/json',
  'json',
  'application/json, application/json',
]

// Bytes that a parse and stringify round trip would change.
const exactBody = encoder.encode(
  `{ "type" : "encoding.finished","media_id":"\\u0061-1",\r\n\t"title":"\\u003c映画\\/ 🎬 \\ud83c\\udfac\\u003e","n":1.0e2 }\n`,
)

const aMoment = () => new Promise<void>((resolve) => setTimeout(resolve, 2))

export function bodies(mount: MountAdapter, { test, expect }: Runner): void {
  const check = fixtures(mount, { test })
  const limited = (name: string, run: (fixture: Fixture, connection: Connection) => Promise<void>) =>
    check(
      name,
      async (fixture) => run(fixture, await fixture.connect()),
      () => ({ maxBodyBytes: limit }),
    )

  check('accepts JSON under any of its content types, or none', async ({ post, handled }) => {
    for (const type of acceptedTypes) {
      expect((await post(freshBody(), { fields: [['Content-Type', type]] })).status).toBe(200)
    }
    expect((await post(freshBody(), { fields: [] })).status).toBe(200)
    expect((await post(freshBody(), { fields: [...json, ['Content-Encoding', 'identity']] })).status).toBe(200)
    expect(handled.length).toBe(acceptedTypes.length + 2)
  })

  check('rejects other content types and encodings', async ({ post, handled }) => {
    for (const type of rejectedTypes) {
      expect((await post(freshBody(), { fields: [['Content-Type', type]] })).status).toBe(415)
    }
    for (const encoding of ['gzip', 'br', 'identity, gzip']) {
      expect((await post(freshBody(), { fields: [...json, ['Content-Encoding', encoding]] })).status).toBe(415)
    }
    expect(handled.length).toBe(0)
  })

  const hmac = { secret: 'secret', header: 'X-Signature' }
  check(
    'shows the verifier the exact bytes',
    async ({ post }) => expect((await post(exactBody, { sign: signWithHmac(hmac) })).status).toBe(200),
    () => ({ verify: hmacSignature(hmac) }),
  )

  check('rejects an empty body', async ({ post, url, connect, outcomes }) => {
    expect((await post(new Uint8Array())).status).toBe(400)
    const connection = await connect()
    connection.send(requestHead('POST', url, chunked) + lastChunk)
    expect((await connection.answer()).status).toBe(400)
    expect(outcomes).toEqual(['malformed', 'malformed'])
  })

  limited('accepts a body as large as the limit, and rejects one that is a byte larger', async ({ post, handled }) => {
    expect((await post(bodyOfLength(limit))).status).toBe(200)
    expect((await post(bodyOfLength(limit + 1))).status).toBe(413)
    expect(handled.length).toBe(1)
  })

  limited('rejects a declared length above the limit before the body arrives', async ({ url }, connection) => {
    connection.send(requestHead('POST', url, lengthOf(limit + 1)))
    expect((await connection.answer()).status).toBe(413)
  })

  limited('lets a sender finish sending, so that it reads the rejection', async ({ url }, connection) => {
    // Few waits: an adapter need not wait for a sender that takes half a second.
    const pieces = 8
    const piece = new Uint8Array(262_144)
    connection.send(requestHead('POST', url, lengthOf(pieces * piece.byteLength)))
    for (let i = 0; i < pieces; i++) {
      expect(connection.isClosed).toBe(false)
      connection.send(piece)
      await aMoment()
    }
    expect((await connection.answer()).status).toBe(413)
  })

  limited('stops at the limit when it reads a body without a length', async ({ url }, connection) => {
    connection.send(requestHead('POST', url, chunked))
    connection.send(chunk(bodyOfLength(limit)))
    connection.send(chunk(new Uint8Array([32])))
    expect((await connection.answer()).status).toBe(413)
    // Keep sending until the connection ends.
    while (!connection.isClosed) {
      connection.send(chunk(new Uint8Array(65_536)))
      await aMoment()
    }
  })

  check('accepts a body in many slow pieces', async ({ url, connect, handled }) => {
    const connection = await connect()
    const body = freshBody()
    connection.send(requestHead('POST', url, chunked))
    for (let i = 0; i < body.byteLength; i += 7) {
      connection.send(chunk(body.subarray(i, i + 7)))
      if (i % 5 === 0) await aMoment()
    }
    connection.send(lastChunk)
    expect((await connection.answer()).status).toBe(200)
    expect(handled.length).toBe(1)
  })

  check('accepts a body of the maximum size in two pieces', async ({ url, connect }) => {
    const connection = await connect()
    const body = bodyOfLength(65_536)
    connection.send(requestHead('POST', url, lengthOf(body.byteLength)))
    connection.send(body.subarray(0, 40_000))
    await aMoment()
    connection.send(body.subarray(40_000))
    expect((await connection.answer()).status).toBe(200)
  })

  check('never accepts a body that a short Content-Length cut off', async ({ url, connect, handled }) => {
    const connection = await connect()
    const body = freshBody()
    connection.send(requestHead('POST', url, lengthOf(body.byteLength - 5)))
    connection.send(body)
    expect((await connection.answer()).status).toBe(400)
    expect(handled.length).toBe(0)
  })

  for (const [framing, fields] of [
    ['a length', lengthOf(1_000)],
    ['chunks', chunked],
  ] as const) {
    check(`drops a delivery whose sender disconnects in the middle of a body with ${framing}`, async (fixture) => {
      const connection = await fixture.connect()
      connection.send(requestHead('POST', fixture.url, fields))
      connection.send(framing === 'chunks' ? chunk(freshBody()) : freshBody())
      await fixture.until(() => fixture.pending() === 1)
      connection.destroy()
      await fixture.until(() => fixture.outcomes.length === 1)
      expect([fixture.outcomes, fixture.pending(), fixture.handled.length]).toEqual([['incomplete'], 0, 0])
      expect((await fixture.post(freshBody())).status).toBe(200)
    })
  }
}
