import { encoder } from '../../../../src/internal/utf8.ts'
import type { Runner } from '../../../../src/testing/runner.ts'
import { signWithUrlToken } from '../../../../src/testing/signers.ts'
import { urlToken } from '../../../../src/verify/url-token.ts'
import { chunk, type Fields, requestHead } from './connection.ts'
import { type Fixture, fixtures, freshBody, type MountAdapter } from './fixture.ts'

const json: Fields = [['Content-Type', 'application/json']]
const deliveriesInARow = 200
/** An endless body: piece size (bytes), delay after each (ms), and the number of pieces (at least 4 s). */
const pieceBytes = 16_384
const pieceMs = 4
const maxPieces = 1_000

const token = { secret: 'secret' }
const sign = signWithUrlToken(token)

export function connections(mount: MountAdapter, { test, expect }: Runner): void {
  const check = fixtures(mount, { test })

  check('accepts hundreds of deliveries on one connection', async ({ connect, send, outcomes }) => {
    const connection = await connect()
    for (let i = 0; i < deliveriesInARow; i++) await send(connection, freshBody())
    expect(outcomes).toEqual(new Array(deliveriesInARow).fill('accepted'))
    expect(connection.isClosed).toBe(false)
  })

  check(
    'leaves a connection usable after a rejection',
    async ({ connect, send, outcomes }) => {
      const connection = await connect()
      await send(connection, freshBody())
      await send(connection, freshBody(), { method: 'PUT' })
      await send(connection, freshBody(), { fields: [['Content-Type', 'text/plain']] })
      await send(connection, encoder.encode('no JSON'), { sign })
      await send(connection, freshBody(), { sign })
      expect(outcomes).toEqual([
        'unauthorized',
        'method_not_allowed',
        'unsupported_media_type',
        'malformed',
        'accepted',
      ])
    },
    () => ({ verify: urlToken(token) }),
  )

  unreadBodies(check, expect)

  check('answers pipelined deliveries in order', async ({ url, connect, outcomes }) => {
    const connection = await connect()
    const body = freshBody()
    const length: Fields = [...json, ['Content-Length', String(body.byteLength)]]
    const request = Buffer.concat([Buffer.from(requestHead('POST', url, length)), body])
    connection.send(Buffer.concat([request, request, Buffer.from(requestHead('GET', url, []))]))
    const statuses: number[] = []
    while (statuses.length < 3) statuses.push((await connection.answer()).status)
    expect(statuses).toEqual([200, 200, 405])
    expect(outcomes.toSorted()).toEqual(['accepted', 'duplicate', 'method_not_allowed'])
  })

  check('accepts a delivery whose sender waits for 100 Continue', async ({ url, connect, handled }) => {
    const connection = await connect()
    const body = freshBody()
    const length = ['Content-Length', String(body.byteLength)] as const
    connection.send(requestHead('POST', url, [...json, length, ['Expect', '100-continue']]))
    expect((await connection.answer()).status).toBe(100)
    connection.send(body)
    expect((await connection.answer()).status).toBe(200)
    expect(handled.length).toBe(1)
  })
}

/** Bodies of rejected deliveries, which nobody reads. */
function unreadBodies(check: ReturnType<typeof fixtures>, expect: Runner['expect']): void {
  // The unread body of a rejected delivery must not be parsed as the next request.
  for (const [method, type] of [
    ['POST', 'text/plain'],
    ['PUT', 'application/json'],
  ] as const) {
    check(`accepts nothing from the unread body of a rejected ${method} of ${type}`, async (fixture) => {
      const connection = await fixture.connect()
      const event = freshBody()
      const length: Fields = [...json, ['Content-Length', String(event.byteLength)]]
      const hidden = Buffer.concat([Buffer.from(requestHead('POST', fixture.url, length)), event])
      const fields: Fields = [
        ['Content-Type', type],
        ['Content-Length', String(hidden.byteLength)],
      ]
      connection.send(requestHead(method, fixture.url, fields))
      const { status, headers } = await connection.answer()
      connection.send(hidden)
      expect(status).toBe(method === 'POST' ? 415 : 405)
      if (headers.get('connection') === 'close') await connection.closed
      else expect((await fixture.send(connection, freshBody())).status).toBe(200)
      expect((await fixture.post(event)).body).toBe('{"status":"accepted"}')
    })
  }

  // A rejected sender could send for ever, and the application would read it all.
  for (const [framing, field] of [
    ['in chunks', ['Transfer-Encoding', 'chunked']],
    ['of a huge length', ['Content-Length', String(2 ** 40)]],
  ] as const) {
    check(
      `ends the connection of a rejected sender whose body ${framing} never ends`,
      async (fixture) => {
        const type = ['Content-Type', 'text/plain'] as const
        const ended = [
          endless(fixture, 'POST', [...json, field]),
          endless(fixture, 'PUT', [...json, field]),
          endless(fixture, 'POST', [type, field]),
        ]
        const rejection = framing === 'in chunks' ? 401 : 413
        expect(await Promise.all(ended)).toEqual([
          [rejection, true],
          [405, true],
          [415, true],
        ])
      },
      () => ({ verify: urlToken(token) }),
    )
  }
}

/** Sends a body without an end. Returns the status of the answer, and whether the connection was closed in time. */
async function endless({ url, connect }: Fixture, method: string, fields: Fields) {
  const connection = await connect()
  connection.send(requestHead(method, url, fields))
  const isChunked = fields.some(([name]) => name === 'Transfer-Encoding')
  const piece = new Uint8Array(pieceBytes)
  connection.send(isChunked ? chunk(piece) : piece)
  const { status } = await connection.answer()
  for (let i = 0; i < maxPieces && !connection.isClosed; i++) {
    connection.send(isChunked ? chunk(piece) : piece)
    await new Promise<void>((resolve) => setTimeout(resolve, pieceMs))
  }
  return [status, connection.isClosed]
}
