import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { createSender } from '../../src/emulator/sender.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** Listens on a free port; `url` is its address. */
async function listen(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  cleanups.push(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }
}

/** Answers with each status in turn, then with the last of them, and keeps what it was sent. */
async function listenAndAnswer(...statuses: number[]) {
  const received: { request: IncomingMessage; body: string }[] = []
  const { url } = await listen(async (request, response) => {
    received.push({ request, body: await text(request) })
    response.writeHead(statuses[Math.min(received.length, statuses.length) - 1] ?? 200, { location: url }).end('answer')
  })
  return { url, received }
}

// Pauses of 30 ms instead of 3 s.
const sender = createSender({ timeScale: 0.01 })

describe('a delivery', () => {
  test('is a POST of the exact body, with the headers of the service and no others of its own', async () => {
    const { url, received } = await listenAndAnswer(200)
    await sender.send(url, '{"title":"映画"}')

    expect(received).toHaveLength(1)
    expect(received[0]?.body).toBe('{"title":"映画"}')
    expect(received[0]?.request.method).toBe('POST')
    expect(received[0]?.request.headers).toEqual({
      host: new URL(url).host,
      'user-agent': expect.stringMatching(/^go-resty\/2\./),
      'content-type': 'application/json',
      'content-length': '18',
      connection: 'close',
    })
  })

  test('turns user:password in the URL into Basic authorization', async () => {
    const { url, received } = await listenAndAnswer(200)
    const [delivery] = await sender.send(url.replace('//', '//media:p%40ss:w%C3%B6rd@'), '{}')

    const credentials = Buffer.from('media:p@ss:wörd').toString('base64')
    expect(received[0]?.request.headers.authorization).toBe(`Basic ${credentials}`)
    expect(delivery?.request.url).toBe(url)
  })

  test('is recorded with its request, its answer and its time', async () => {
    const { url } = await listenAndAnswer(202)
    const before = Date.now()
    const delivery = await sender.deliver(url, '{"a":1}')

    expect(delivery).toEqual({
      attempt: 1,
      request: { url, headers: expect.objectContaining({ 'Content-Type': 'application/json' }), body: '{"a":1}' },
      startedAt: expect.any(Date),
      durationMs: expect.any(Number),
      answer: { status: 202, body: 'answer' },
    })
    expect(delivery.startedAt.getTime()).toBeGreaterThanOrEqual(before)
    expect(delivery.durationMs).toBeLessThan(3_000)
  })

  test('keeps no more than 4,096 characters of the answer', async () => {
    const { url } = await listen((_, response) => response.end('x'.repeat(100_000)))
    expect((await sender.deliver(url, '{}')).answer?.body).toBe('x'.repeat(4_096))
  })

  test.each(['ftp://127.0.0.1/', 'not a URL'])('cannot be made to %s', async (url) => {
    await expect(sender.send(url, '{}')).rejects.toThrow(TypeError)
  })
})

describe('an event', () => {
  test.each([200, 204, 299])('is acknowledged by %d', async (status) => {
    const { url, received } = await listenAndAnswer(status)
    const deliveries = await sender.send(url, '{}')
    expect(deliveries).toHaveLength(1)
    expect(deliveries[0]?.failure).toBeUndefined()
    expect(received).toHaveLength(1)
  })

  test('is sent again until it is acknowledged, the same each time', async () => {
    const { url, received } = await listenAndAnswer(503, 500, 200)
    const deliveries = await sender.send(url, '{"n":1}')
    expect(
      deliveries.map(({ attempt, answer, failure, retryInMs }) => [attempt, answer?.status, failure, retryInMs]),
    ).toEqual([
      [1, 503, { reason: 'status', message: 'answered 503' }, 30],
      [2, 500, { reason: 'status', message: 'answered 500' }, 30],
      [3, 200, undefined, undefined],
    ])
    expect(received.map(({ body }) => body)).toEqual(['{"n":1}', '{"n":1}', '{"n":1}'])
  })

  test('is given up after three retries, each 3 s (here scaled) after the failure', async () => {
    const { url, received } = await listenAndAnswer(401)
    const deliveries = await sender.send(url, '{}')

    expect(received).toHaveLength(4)
    expect(deliveries.map(({ retryInMs }) => retryInMs)).toEqual([30, 30, 30, undefined])
    expect(deliveries.at(-1)?.failure?.message).toBe('answered 401')
    const starts = deliveries.map(({ startedAt }) => startedAt.getTime())
    // A timer may fire a millisecond early, and a start is rounded to one.
    for (const [index, start] of starts.slice(1).entries())
      expect(start - (starts[index] ?? 0)).toBeGreaterThanOrEqual(28)
  })

  test('does not follow a redirect', async () => {
    const { url, received } = await listenAndAnswer(307, 200)
    const deliveries = await sender.send(url, '{}')
    expect(deliveries.map(({ answer }) => answer?.status)).toEqual([307, 200])
    expect(received).toHaveLength(2)
  })

  test('is sent again when the connection is refused', async () => {
    const { server, url } = await listen(() => {})
    server.close()
    await once(server, 'close')
    const deliveries = await sender.send(url, '{}')
    expect(deliveries).toHaveLength(4)
    expect(deliveries[0]?.failure).toEqual({ reason: 'connection', message: 'ECONNREFUSED' })
    expect(deliveries[0]?.answer).toBeUndefined()
  })
})

describe('a receiver that is too slow', () => {
  const hurried = createSender({ timeoutMs: 60, timeScale: 0 })
  const timeout = { reason: 'timeout', message: 'no answer within 60 ms' }

  test('fails the delivery when it never answers', async () => {
    const { url } = await listen(() => {})
    expect((await hurried.deliver(url, '{}')).failure).toEqual(timeout)
  })

  test('fails the delivery when its answer never ends', async () => {
    const { url } = await listen((_, response) => response.writeHead(200).write('{'))
    expect((await hurried.deliver(url, '{}')).failure).toEqual(timeout)
  })

  test('is sent the event again', async () => {
    let deliveries = 0
    const { url } = await listen((_, response) => {
      deliveries += 1
      if (deliveries > 1) response.end()
    })
    const [first, second] = await hurried.send(url, '{}')
    expect(first?.failure).toEqual(timeout)
    expect(second?.failure).toBeUndefined()
  })
})
