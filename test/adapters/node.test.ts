import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { nodeHandler, toDelivery } from '../../adapters/node.ts'
import type { BodyReader } from '../../src/index.ts'
import { postJson } from '../support/post-json.ts'
import { serveWebhook } from '../support/serve.ts'
import { bytes, freshBody, post, signedRequest, url, watchedReceiver } from './receivers.ts'

const accepted = { status: 200, body: { status: 'accepted' } }

test('works in front of an Express application, which serves every other path', async () => {
  const { receiver, handled } = watchedReceiver(url)
  const app = express().use(express.json(), (request, response) => void response.json({ echo: request.body }))
  const webhooks = nodeHandler(receiver)
  const target = await serveWebhook((request, response) =>
    request.url?.startsWith('/webhooks/media') ? webhooks(request, response) : app(request, response),
  )
  expect(await post(target, url)).toEqual(accepted)
  const other = await postJson(new URL('/other', target), { a: 1 })
  expect(await other.json()).toEqual({ echo: { a: 1 } })
  expect(handled).toHaveLength(1)
})

test('takes headers as a middleware has set them right, and those of the signature as they were sent', async () => {
  const { receiver } = watchedReceiver(url)
  const webhooks = nodeHandler(receiver)
  const target = await serveWebhook((request, response) => {
    const { headers } = request
    if (request.headers['x-wrong'] !== undefined) headers['content-type'] = 'application/json'
    return webhooks(request, response)
  })
  const { url: signedUrl, init } = await signedRequest(target, url)
  const post = async (fields: Record<string, string>) => {
    const headers = { ...init.headers, 'content-type': 'text/plain', ...fields }
    return (await fetch(signedUrl, { ...init, headers } as RequestInit)).status
  }
  expect(await post({ 'x-wrong': 'yes' })).toBe(200)
  expect(await post({})).toBe(415)
})

test.each<[string, (request: IncomingMessage) => unknown]>([
  ['paused', (request) => request.pause()],
  ['given an encoding', (request) => request.setEncoding('utf8')],
  ['given an encoding of binary data', (request) => request.setEncoding('base64')],
])('reads a request that a middleware has %s, in one piece or in many', async (_, touch) => {
  const { receiver, handled } = watchedReceiver(bytes)
  const webhooks = nodeHandler(receiver)
  const target = await serveWebhook((request, response) => {
    touch(request)
    return webhooks(request, response)
  })
  expect(await post(target, bytes)).toEqual(accepted)
  const { url: signedUrl, init } = await signedRequest(target, bytes)
  const pieces = new ReadableStream({
    async start(controller) {
      for (const byte of init.body) {
        controller.enqueue(Uint8Array.of(byte))
        if (byte === 0x2c) await turn()
      }
      controller.close()
    },
  })
  const response = await fetch(signedUrl, { ...init, body: pieces, duplex: 'half' } as RequestInit)
  expect(response.status).toBe(200)
  expect(handled).toHaveLength(2)
})

test.each([
  ['the end of the request', ['end', 'close']],
  ['also its bytes', ['data', 'end', 'close']],
])('lets a middleware listen for %s', async (_, names) => {
  const { receiver, handled } = watchedReceiver(bytes)
  const webhooks = nodeHandler(receiver)
  const heard: string[] = []
  const target = await serveWebhook((request, response) => {
    for (const name of names) request.on(name, () => heard.push(name))
    return webhooks(request, response)
  })
  expect(await post(target, bytes)).toEqual(accepted)
  await expect.poll(() => heard).toEqual(names)
  expect(handled).toHaveLength(1)
})

test.each<[string, string, number, (request: IncomingMessage) => unknown]>([
  ['longer than the limit', 'too_large', 10, () => {}],
  ['read by another reader in the meantime', 'incomplete', 65_536, (request) => request.read()],
])('a body that has arrived and is %s is %s', async (_, result, limit, meanwhile) => {
  const { receiver } = watchedReceiver(bytes)
  const read: unknown[] = []
  const target = await serveWebhook(async (request, response) => {
    await turn()
    const body = toDelivery(request).body as BodyReader
    meanwhile(request)
    read.push(await body(limit))
    return nodeHandler(receiver)(request, response)
  })
  await post(target, bytes)
  expect(read).toEqual([result])
})

const part = 'Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"type":'

/** Disconnects the sender while `handle` runs. Resolves with the request once `handle` resolves. */
async function abandoned(sent: string, handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${sent}`)
  const [request, response] = await once(server, 'request')
  const handled = handle(request, response)
  await turn()
  socket.destroy()
  await handled
  server.close()
  return request as IncomingMessage
}

describe('a sender that disconnects', () => {
  const listeners = (request: IncomingMessage) =>
    ['data', 'end', 'close', 'error'].map((name) => request.listenerCount(name))

  test('leaves no listeners on the request, and the handler resolves', async () => {
    const { receiver, reports } = watchedReceiver(bytes)
    let before: number[] = []
    const request = await abandoned(part, (request, response) => {
      before = listeners(request)
      return nodeHandler(receiver)(request, response)
    })
    expect(listeners(request)).toEqual(before)
    expect(reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
  })

  test('before the receiver reads the body is reported as incomplete, not as a consumed body', async () => {
    const { receiver, reports } = watchedReceiver(bytes)
    await abandoned(part, async (request, response) => {
      await new Promise((resolve) => request.on('close', resolve))
      await nodeHandler(receiver)(request, response)
    })
    expect(reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
  })

  test('during verification gets no answer, and the handler resolves', async () => {
    let gone: Promise<unknown> = Promise.resolve()
    const verify = async () => {
      await gone
      return { verified: true } as const
    }
    const { receiver, reports } = watchedReceiver({ verify: { name: 'slow', needsBytes: true, verify } })
    const body = Buffer.from(freshBody())
    await abandoned(`Content-Length: ${body.byteLength}\r\n\r\n${body}`, (request, response) => {
      gone = once(response, 'close')
      return nodeHandler(receiver)(request, response)
    })
    expect(reports.map(({ outcome }) => outcome)).toEqual(['accepted'])
  })
})
