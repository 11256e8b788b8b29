import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fastifyReceiver } from '../../adapters/fastify.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { koaHandler } from '../../adapters/koa.ts'
import { closeServer, nodeHandler } from '../../adapters/node.ts'
import type { Receiver } from '../../src/index.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { untyped } from '../support/untyped.ts'
import { bytes, freshBody, signedRequest, url, watchedReceiver } from './receivers.ts'

const names = ['node', 'express5', 'express4', 'fastify5', 'fastify4', 'koa3', 'koa2'] as const

/** Sends the head of a forged delivery of a thousand bytes. Resolves once it is answered. */
async function rejected(name: AdapterName) {
  const mounted = await mounts[name](watchedReceiver(url).receiver)
  onTestFinished(mounted.close)
  const socket = connect(Number(new URL(mounted.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('POST /webhooks/media HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n')
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 401/)
  expect(String(answer)).not.toMatch(/connection: close/i)
  return { socket, mounted }
}

describe.each(names)('%s, after it has rejected a body whose short rest is to come', (name) => {
  test('keeps the connection of a sender that sends it', async () => {
    const { socket, mounted } = await rejected(name)
    socket.write(Buffer.alloc(1_000))
    const { url: target } = await signedRequest(mounted.url, url)
    const { pathname, search } = new URL(target)
    const body = freshBody()
    socket.write(`POST ${pathname}${search} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.byteLength}\r\n\r\n`)
    socket.write(body)
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200/)
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(socket.destroyed).toBe(false)
  })

  test('ends the connection of one that does not', async () => {
    const { socket } = await rejected(name)
    socket.on('error', () => {})
    await once(socket, 'close')
  })
})

type Receives = Pick<Receiver, 'receive'>
const overHttp2: [string, (receiver: Receives) => Promise<Http2Server>][] = [
  ['node', async (receiver) => createHttp2Server(nodeHandler(receiver))],
  ['koa', async (receiver) => createHttp2Server(untyped(new Koa().use(koaHandler(receiver)).callback()))],
  [
    'hono',
    async (receiver) =>
      createHttp2Server(untyped(getRequestListener(new Hono().all('*', honoHandler(receiver)).fetch))),
  ],
  ['fetch', async (receiver) => createHttp2Server(untyped(getRequestListener(fetchHandler(receiver))))],
  [
    'fastify',
    async (receiver) => {
      const app = fastify({ http2: true })
      app.register(fastifyReceiver, { receiver: { ...receiver, close: async () => ({ unfinished: [] }) }, url: '/' })
      await app.ready()
      return app.server as Http2Server
    },
  ],
]

/** Serves an adapter over HTTP/2, and opens a connection to it. */
async function connected(serve: (receiver: Receives) => Promise<Http2Server>, receiver: Receives) {
  const server = await serve(receiver)
  if (!server.listening) server.listen(0, '127.0.0.1')
  if (!server.listening) await once(server, 'listening')
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => session.destroy())
  return { server, session }
}

/** Resolves with the answer to a stream. */
async function answered(stream: ClientHttp2Stream) {
  let answer = ''
  stream.on('data', (piece) => {
    answer += piece
  })
  const ended = once(stream, 'end')
  const [headers] = await once(stream, 'response')
  await ended
  return [headers[':status'], JSON.parse(answer).code]
}

test.each(overHttp2)(
  '%s closes the streams of rejected senders over HTTP/2, which hold up no end',
  async (name, serve) => {
    const { receiver } = watchedReceiver(url)
    const { server, session } = await connected(serve, receiver)
    const streams = Array.from({ length: 50 }, () => {
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      stream.write('{')
      return stream
    })
    expect(await Promise.all(streams.map(answered))).toEqual(streams.map(() => [401, 'unauthorized']))
    // A web handler never sees the session, so its server cannot close it before Node 24.
    if (name === 'fetch') session.destroy()
    // It waits for what is left without a limit.
    await closeServer(server, receiver, { timeoutMs: Number.POSITIVE_INFINITY })
  },
)

describe.each(overHttp2)('%s over HTTP/2, once it has rejected a body that it began to read', (_name, serve) => {
  test.each<[string, [number, string], (session: ClientHttp2Session) => ClientHttp2Stream]>([
    ['is too large and goes on', [413, 'too_large'], (session) => sent(session, {}, Buffer.alloc(2_000))],
    ['is too slow', [400, 'incomplete'], (session) => sent(session, {}, Buffer.from('{'))],
    ['never ends', [400, 'incomplete'], (session) => sent(session, { 'content-length': 2 }, Buffer.from('{}'))],
    ['is larger than its window', [413, 'too_large'], (session) => sent(session, {}, Buffer.alloc(200_000))],
  ])('closes the stream of one that %s', async (_, rejection, send) => {
    const bodyTimeoutMs = rejection[1] === 'incomplete' ? 100 : 60_000
    const { receiver } = watchedReceiver({ verify: bytes.verify, maxBodyBytes: 1_000, bodyTimeoutMs })
    const { server, session } = await connected(serve, receiver)
    let open = 0
    server.on('stream', (stream: ServerHttp2Stream) => {
      open++
      stream.once('close', () => open--)
    })
    const streams = Array.from({ length: 20 }, () => send(session))
    expect(await Promise.all(streams.map(answered))).toEqual(streams.map(() => rejection))
    await expect.poll(() => open).toBe(0)
  })
})

function sent(session: ClientHttp2Session, fields: object, content: Buffer) {
  const stream = session.request({ ':method': 'POST', ':path': '/', ...fields })
  stream.on('error', () => {})
  stream.write(content)
  return stream
}
