import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { createReceiver, type DeliveryReport, type ReceiverOptions, unverified } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../conformance/subject.ts'

const body = encodePayload(samplePayload('encoding.finished'))
const fields = { ':method': 'POST', ':path': '/webhooks/media', 'content-type': 'application/json' }

/** Opens an HTTP/2 server with a receiver, and a connection to it. */
async function opened(options: Partial<ReceiverOptions> = {}) {
  const reports: DeliveryReport[] = []
  const hooks = { delivery: (report: DeliveryReport) => void reports.push(report) }
  const receiver = createReceiver({ verify: unverified(), logger: silent, hooks, ...options }).onAny(() => {})
  const server = createServer(nodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    session.destroy()
    server.close()
    await receiver.close({ timeoutMs: 100 })
  })
  return { session, reports }
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

test('a delivery over HTTP/2 that is too large is answered 413, without a header of HTTP/1', async () => {
  const { session } = await opened({ maxBodyBytes: 10 })
  const headers = await answerOf(session, body)
  expect(headers[':status']).toBe(413)
  expect(headers).not.toHaveProperty('connection')
  expect((await answerOf(session, body))[':status']).toBe(413)
})
