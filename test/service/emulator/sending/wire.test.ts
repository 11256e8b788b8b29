import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../../adapters/node.ts'
import { createReceiver, hmacSignature } from '../../../../src/index.ts'
import { createCourier } from '../../../../src/service/emulator/sending/courier.ts'
import { signWithHmac } from '../../../../src/testing/index.ts'
import { silent } from '../../../support/silent.ts'
import { listen, listenAndAnswer, listenTcp, outcomeOf, refusingUrl } from './targets.ts'

const sender = createCourier({ timeScale: 0.001 })
const body = '{"title":"映画","media_id":"m1"}'

describe('a delivery with the fault', () => {
  test('corrupt-body has the full length but is not JSON, and its signature is that of the correct body', async () => {
    const { url, received } = await listenAndAnswer(400, 200)
    const sign = signWithHmac({ secret: 'signing-secret', header: 'x-signature' })
    const deliveries = await sender.send(url, body, { fault: 'corrupt-body', sign })

    const [corrupt, sound] = received
    expect(corrupt?.request.headers['content-length']).toBe(String(Buffer.byteLength(corrupt?.body ?? '')))
    expect(() => JSON.parse(corrupt?.body ?? '')).toThrow(SyntaxError)
    expect(corrupt?.request.headers['x-signature']).toBe(sound?.request.headers['x-signature'])
    expect(sound?.body).toBe(body)
    expect(deliveries.map(({ request }) => request.body)).toEqual([corrupt?.body, body])
    expect(deliveries.map(outcomeOf)).toEqual(['status', 200])
  })

  test('corrupt-body is rejected by a receiver that verifies signatures', async () => {
    const signature = { secret: 'signing-secret', header: 'x-signature' }
    const receiver = createReceiver({ verify: hmacSignature(signature), logger: silent })
    const { url } = await listen(nodeHandler(receiver))
    const { answer } = await sender.deliver(url, body, { fault: 'corrupt-body', sign: signWithHmac(signature) })
    expect(answer?.status).toBe(401)
  })

  test('cut-connection ends in the middle of the body, and only once', async () => {
    const requests: string[] = []
    const url = await listenTcp((socket) => {
      let request = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        request += chunk
        if (request.endsWith(body)) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
      socket.on('end', () => requests.push(request))
    })
    const deliveries = await sender.send(url, body, { fault: 'cut-connection' })

    const [head = '', half = ''] = requests[0]?.split('\r\n\r\n') ?? []
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`)
    expect(Buffer.byteLength(half)).toBe(Math.floor(Buffer.byteLength(body) / 2))
    expect(body.startsWith(half)).toBe(true)
    expect(deliveries[0]?.request.body).toBe(half)
    expect(deliveries[0]?.failure).toEqual({
      reason: 'connection',
      message: 'cut-connection: the connection was cut in the middle of the body',
    })
    expect(deliveries.map(outcomeOf)).toEqual(['connection', 200])
  })

  test('cut-connection reports the error when no server listens', async () => {
    const { failure } = await sender.deliver(await refusingUrl(), body, { fault: 'cut-connection' })
    expect(failure).toEqual({ reason: 'connection', message: 'ECONNREFUSED' })
  })

  test('lost-answer is received completely and answered, and the event is sent again', async () => {
    const { url, received } = await listenAndAnswer(200)
    const deliveries = await sender.send(url, body, { fault: 'lost-answer' })

    expect(received.map((delivery) => delivery.body)).toEqual([body, body])
    expect(deliveries.map(outcomeOf)).toEqual(['connection', 200])
    expect(deliveries[0]?.answer).toBeUndefined()
    expect(deliveries[0]?.failure?.message).toBe('lost-answer: the connection was cut before the answer')
  })
})

describe('an answer', () => {
  test('is kept with its header fields, up to a limit', async () => {
    const { url } = await listen((_, response) => {
      response.sendDate = false
      response
        .writeHead(200, { 'X-Request-Id': 'r-17', 'Set-Cookie': ['a=1', 'b=2'], 'X-Long': 'x'.repeat(2_048) })
        .end()
    })
    const { answer } = await sender.deliver(url, body)
    expect(answer?.headers).toEqual({ 'x-request-id': 'r-17', 'set-cookie': 'a=1,b=2' })
  })

  test('that is fast but never ends counts by its status', async () => {
    const { url } = await listen((_, response) => {
      const chunk = 'x'.repeat(16_384)
      const write = () => {
        while (response.write(chunk));
      }
      response.on('drain', write)
      write()
    })
    const { answer, failure } = await sender.deliver(url, body)
    expect(answer).toMatchObject({ status: 200, body: 'x'.repeat(1_024) })
    expect(failure).toBeUndefined()
  })

  test('that is slow and never ends is a timeout', async () => {
    const { url } = await listen((_, response) => {
      const timer = setInterval(() => response.write('x'), 5)
      response.on('close', () => clearInterval(timer))
    })
    const { failure, answer } = await createCourier({ timeoutMs: 60 }).deliver(url, body)
    expect(failure).toEqual({ reason: 'timeout', message: 'no answer within 60 ms' })
    expect(answer).toBeUndefined()
  })

  test('that is cut off counts as none', async () => {
    const { url } = await listen((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy())
    })
    expect((await sender.deliver(url, body)).failure).toEqual({ reason: 'connection', message: 'ECONNRESET' })
  })

  test.each([
    ['nothing', ''],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ])('of %s is a connection failure', async (_, answer) => {
    const url = await listenTcp((socket) => socket.once('data', () => socket.end(answer)))
    const { failure } = await sender.deliver(url, body)
    expect(failure).toEqual({ reason: 'connection', message: expect.any(String) })
  })

  test('counts even if its connection closes before it was read', async () => {
    const large = 'x'.repeat(60_000)
    const url = await listenTcp((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n${large}`))
    })
    const deliveries = await Promise.all(Array.from({ length: 100 }, () => sender.deliver(url, body)))
    expect(new Set(deliveries.map(outcomeOf))).toEqual(new Set([200]))
  })

  test('counts even if the receiver did not read the body', async () => {
    const { url } = await listen((_, response) => response.writeHead(413).end('too large'))
    const { answer } = await sender.deliver(url, 'x'.repeat(1_000))
    expect(answer).toMatchObject({ status: 413, body: 'too large' })
  })

  test('may contain multi-byte characters in pieces', async () => {
    const { url } = await listen(async (_, response) => {
      for (const byte of Buffer.from('映画')) {
        response.write(Uint8Array.of(byte))
        await new Promise(setImmediate)
      }
      response.end()
    })
    expect((await sender.deliver(url, body)).answer?.body).toBe('映画')
  })

  test('that redirects is not followed, which the record shows', async () => {
    const { url, received } = await listenAndAnswer(307)
    expect((await sender.deliver(url, body)).failure?.message).toBe('answered 307: redirects are not followed')
    expect(received).toHaveLength(1)
  })
})

test('a header that cannot be sent only fails its delivery', async () => {
  const sign = async (draft: { url: string; body: Uint8Array }) => ({ ...draft, headers: { 'x-token': 'a\nb' } })
  const { failure } = await sender.deliver(await refusingUrl(), body, { sign })
  expect(failure).toEqual({ reason: 'connection', message: 'ERR_INVALID_CHAR' })
})
