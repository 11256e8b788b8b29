import { type EventEmitter, once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { closeServer, nodeHandler } from '../../adapters/node.ts'
import { createReceiver, type DeliveryReport, type ReceiverOptions, unverified } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

const body = encodePayload(samplePayload('encoding.finished'))
const fields = { ':method': 'POST', ':path': '/webhooks/media', 'content-type': 'application/json' }

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => Promise<void>

/** Opens an HTTP/2 server with a receiver, and a connection to it. */
async function opened(options: Partial<ReceiverOptions> = {}, wrap = (handler: Handler): Handler => handler) {
  const reports: DeliveryReport[] = []
  const hooks = { delivery: (report: DeliveryReport) => void reports.push(report) }
  const receiver = createReceiver({ verify: unverified(), logger: silent, hooks, ...options }).onAny(() => {})
  const server = createServer(wrap(nodeHandler(receiver))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    session.destroy()
    server.close()
    await receiver.close({ timeoutMs: 100 })
  })
  return { server, receiver, session, reports }
}

async function answerOf(session: ClientHttp2Session, content: Uint8Array) {
  const stream = session.request(fields)
  stream.on('error', () => {})
  stream.end(content)
  const [headers] = await once(stream, 'response')
  stream.resume()
  return headers
}

test('a delivery over HTTP/2 is accepted', async () => {
  const { session } = await opened()
  expect((await answerOf(session, body))[':status']).toBe(200)
})

test.each<[string, (stream: ClientHttp2Stream) => void]>([
  ['cancelled', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
  ['destroyed', (stream) => stream.destroy()],
])('a delivery over HTTP/2 that is %s half-way is incomplete', async (_, reset) => {
  const { session, reports } = await opened()
  const stream = session.request({ ...fields, 'content-length': body.byteLength })
  stream.on('error', () => {})
  stream.write(body.subarray(0, 20))
  await new Promise((resolve) => setTimeout(resolve, 50))
  reset(stream)
  await expect.poll(() => reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
})

test.each([
  ['CANCEL', constants.NGHTTP2_CANCEL, 0],
  ['NO_ERROR', constants.NGHTTP2_NO_ERROR, 0],
  ['INTERNAL_ERROR', constants.NGHTTP2_INTERNAL_ERROR, 0],
  // The client now writes the end of the stream first, and the reset apart from it.
  ['CANCEL', constants.NGHTTP2_CANCEL, 30],
])('a delivery over HTTP/2 without a length that is reset with %s is incomplete', async (_, code, afterMs) => {
  const { session, reports, server } = await opened()
  const stream = session.request(fields)
  stream.on('error', () => {})
  const begun = once(server, 'request')
  // The whole body of an event: only the reset tells that the sender meant to send more.
  stream.write(body)
  const [request] = (await begun) as [EventEmitter]
  await once(request, 'data')
  await new Promise((resolve) => setTimeout(resolve, afterMs))
  stream.close(code)
  await expect.poll(() => reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
})

describe('a delivery over HTTP/2 that is reset before its body is read', () => {
  /** Waits until the test lets it go on. */
  function gate() {
    let open = () => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    return { open, opened }
  }

  async function reset(session: ClientHttp2Session, server: EventEmitter) {
    const begun = once(server, 'request')
    const stream = session.request({ ...fields, 'content-length': body.byteLength })
    stream.on('error', () => {})
    const [request] = (await begun) as [EventEmitter]
    const closed = once(request, 'close')
    stream.close(constants.NGHTTP2_CANCEL)
    await closed
  }

  test('is incomplete as soon as a slow verifier has answered', async () => {
    const { open, opened: isOpen } = gate()
    const verify = { name: 'slow', needsBytes: false, verify: () => isOpen.then(() => ({ verified: true as const })) }
    const { session, reports, server } = await opened({ verify })
    await reset(session, server)
    open()
    await expect
      .poll(() => reports)
      .toMatchObject([{ outcome: 'incomplete', reason: expect.stringMatching(/cut off/) }])
  })

  test('is incomplete behind a middleware that waits', async () => {
    const { open, opened: isOpen } = gate()
    const { session, reports, server } = await opened({}, (handler) => async (request, response) => {
      await isOpen
      return handler(request, response)
    })
    await reset(session, server)
    open()
    await expect.poll(() => reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
  })
})

test('a delivery over HTTP/2 that is too large is answered 413, without a header of HTTP/1', async () => {
  const { session } = await opened({ maxBodyBytes: 10 })
  const headers = await answerOf(session, body)
  expect(headers[':status']).toBe(413)
  expect(headers).not.toHaveProperty('connection')
  expect((await answerOf(session, body))[':status']).toBe(413)
})

describe('closeServer over HTTP/2', () => {
  test('closes idle sessions, and lets a delivery that is half sent be answered', async () => {
    const { server, receiver, session: idle } = await opened()
    const busy = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(() => busy.destroy())
    expect((await answerOf(idle, body))[':status']).toBe(200)
    const stream = busy.request(fields)
    const begun = once(server, 'request')
    stream.write(body.subarray(0, 20))
    await begun
    const [idleClosed, busyClosed, answered] = [once(idle, 'close'), once(busy, 'close'), once(stream, 'response')]
    const closed = closeServer(server, receiver, { timeoutMs: Number.POSITIVE_INFINITY })
    await idleClosed
    stream.end(body.subarray(20))
    const [headers] = await answered
    stream.resume()
    expect(headers[':status']).toBe(200)
    expect(await closed).toEqual({ unfinished: [] })
    await busyClosed
  })

  test('cuts off a delivery that never ends', async () => {
    const { server, receiver, session } = await opened()
    const stream = session.request(fields)
    stream.on('error', () => {})
    const begun = once(server, 'request')
    stream.write(body.subarray(0, 20))
    await begun
    const cut = once(session, 'close')
    await closeServer(server, receiver, { timeoutMs: 20 })
    await cut
  })
})
