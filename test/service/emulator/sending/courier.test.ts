import { describe, expect, test } from 'vitest'
import { createCourier } from '../../../../src/service/emulator/sending/courier.ts'
import { listen, listenAndAnswer, outcomeOf, refusingUrl } from './targets.ts'

// Pauses take 30 ms instead of 3 s.
// Not the machine's clock, which never goes back: another test may have set the time ahead.
const sender = createCourier({ timeScale: 0.01, clock: () => BigInt(Date.now()) * 1_000_000n })

describe('a delivery', () => {
  test('is a POST of the exact body with exactly the headers of the service', async () => {
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

  test('is recorded with its request, answer and duration', async () => {
    const { url } = await listenAndAnswer(202)
    const before = Date.now()
    const delivery = await sender.deliver(url, '{"a":1}')

    expect(delivery).toEqual({
      attempt: 1,
      request: { url, headers: expect.objectContaining({ 'Content-Type': 'application/json' }), body: '{"a":1}' },
      startedAt: expect.any(Date),
      durationMs: expect.any(Number),
      answer: { status: 202, headers: expect.objectContaining({ connection: 'close' }), body: 'answer' },
    })
    expect(delivery.startedAt.getTime()).toBeGreaterThanOrEqual(before)
    expect(delivery.durationMs).toBeLessThan(3_000)
  })

  test('keeps no more than 1,024 characters of the answer', async () => {
    const { url } = await listen((_, response) => response.end('x'.repeat(100_000)))
    expect((await sender.deliver(url, '{}')).answer?.body).toBe('x'.repeat(1_024))
  })

  test.each(['ftp://127.0.0.1/', 'not a URL'])('to %s is rejected', async (url) => {
    await expect(sender.send(url, '{}')).rejects.toThrow('http or https')
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
    const deliveries = await sender.send(await refusingUrl(), '{}')
    expect(deliveries).toHaveLength(4)
    expect(deliveries[0]?.failure).toEqual({ reason: 'connection', message: 'ECONNREFUSED' })
    expect(deliveries[0]?.answer).toBeUndefined()
  })
})

describe('a slow receiver', () => {
  const hurried = createCourier({ timeoutMs: 60, timeScale: 0 })
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

describe('the observed profile', () => {
  const observed = createCourier({ profile: 'observed', timeoutMs: 40, timeScale: 0.00001 })
  // After 30 s, then 1, 2, 4, 8 and 16 minutes.
  const pauses = [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, undefined].map((ms) => ms && expect.closeTo(ms))

  test('retries six times when the connection is refused', async () => {
    const deliveries = await observed.send(await refusingUrl(), '{}')
    expect(deliveries.map(outcomeOf)).toEqual(new Array(7).fill('connection'))
    expect(deliveries.map(({ retryInMs }) => retryInMs)).toEqual(pauses)
  })

  test('retries six times when no answer comes in time', async () => {
    const { url } = await listen(() => {})
    const deliveries = await observed.send(url, '{}')
    expect(deliveries.map(outcomeOf)).toEqual(new Array(7).fill('timeout'))
    expect(deliveries.map(({ retryInMs }) => retryInMs)).toEqual(pauses)
  })

  test.each([301, 401, 500, 503])('does not retry after an answer of %d', async (status) => {
    const { url, received } = await listenAndAnswer(status)
    expect((await observed.send(url, '{}')).map(({ answer }) => answer?.status)).toEqual([status])
    expect(received).toHaveLength(1)
  })
})

describe('the fault', () => {
  test('duplicate delivers an acknowledged event again, and ignores that answer', async () => {
    const { url, received } = await listenAndAnswer(503, 200, 500)
    const deliveries = await sender.send(url, '{}', { fault: 'duplicate' })
    expect(deliveries.map(({ copy, answer }) => [copy, answer?.status])).toEqual([
      [undefined, 503],
      [undefined, 200],
      [true, 500],
    ])
    expect(received).toHaveLength(3)
  })

  test('duplicate does nothing for an event that is given up', async () => {
    const { url, received } = await listenAndAnswer(500)
    await sender.send(url, '{}', { fault: 'duplicate' })
    expect(received).toHaveLength(4)
  })

  test('concurrent-duplicate delivers an event on two connections at the same time', async () => {
    const open: { end(): void }[] = []
    const { url } = await listen((_, response) => {
      open.push(response)
      // Neither is answered before both have arrived.
      if (open.length === 2) for (const each of open) each.end()
    })
    const deliveries = await sender.send(url, '{}', { fault: 'concurrent-duplicate' })
    expect(deliveries.map(({ attempt, copy, answer }) => [attempt, copy, answer?.status])).toEqual([
      [1, undefined, 200],
      [1, true, 200],
    ])
  })

  test('concurrent-duplicate adds nothing to the retries', async () => {
    const { url, received } = await listenAndAnswer(500)
    const deliveries = await sender.send(url, '{}', { fault: 'concurrent-duplicate' })
    expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 1, 2, 3, 4])
    expect(received).toHaveLength(5)
  })

  test('delay makes the first delivery late by 5 s, here scaled', async () => {
    const { url, received } = await listenAndAnswer(200)
    const begin = performance.now()
    await sender.send(url, '{}', { fault: 'delay' })
    // A timer may fire a millisecond early.
    expect(performance.now() - begin).toBeGreaterThanOrEqual(49)
    expect(received).toHaveLength(1)
  })
})

test('an aborted sender cuts off its delivery and sends nothing more', async () => {
  const stop = new AbortController()
  const { url } = await listen(() => stop.abort())
  await expect(sender.send(url, '{}', { signal: stop.signal })).rejects.toThrow('aborted')
})
