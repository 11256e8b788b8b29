import { describe, expect, test } from 'vitest'
import type { Client } from '../../../src/service/client/index.ts'
import { cut, failureOf, hang, keyPair, oneWebhook, patientClient, type Scripted, serve } from './scripted-service.ts'

const done = { body: { status: 'success', message: 'done' } }
const url = 'https://example.com/hooks'

const repeatable: [string, (client: Client) => Promise<unknown>, Scripted][] = [
  ['GET', ({ webhook }) => webhook.get('w1'), oneWebhook()],
  ['PATCH', ({ webhook }) => webhook.update('w1', { url }), done],
  ['DELETE', ({ apiKey }) => apiKey.delete('k1'), done],
]
const once: [string, (client: Client) => Promise<unknown>][] = [
  ['creates', ({ webhook }) => webhook.create({ url })],
  ['triggers', ({ webhook }) => webhook.check('w1')],
]

describe.each(repeatable)('A %s', (_, call, answer) => {
  test.each([
    [429, 'the rate limit', { status: 429 }],
    [502, 'a bad gateway', { status: 502, body: '<html>' }],
    [503, 'a service that is down', { status: 503 }],
    [504, 'a gateway without an answer', { status: 504 }],
    [0, 'a cut connection', cut],
  ])('is retried after %d, %s', async (_, __, fault) => {
    const { client, requests, pauses } = await serve(fault, fault, answer)
    expect(await call(client)).toMatchObject({ status: 'success' })
    expect(requests).toHaveLength(3)
    expect(new Set(requests.map(({ method, url, body }) => `${method} ${url} ${body}`)).size).toBe(1)
    expect(pauses).toHaveLength(2)
    expect(pauses[0]).toBeLessThanOrEqual(500)
    expect(pauses[1]).toBeLessThanOrEqual(1_000)
  })

  test('is retried after a timeout', async () => {
    const { baseUrl, requests } = await serve(hang, answer)
    const { client, pauses } = patientClient({ baseUrl, timeoutMs: 60 })
    expect(await call(client)).toMatchObject({ status: 'success' })
    expect(requests).toHaveLength(2)
    expect(pauses).toHaveLength(1)
  })

  test.each([400, 401, 403, 404, 500])('is not retried after %d', async (status) => {
    const { client, requests } = await serve({ status })
    await expect(call(client)).rejects.toMatchObject({ status })
    expect(requests).toHaveLength(1)
  })

  test('fails with the error of the last attempt', async () => {
    const { client, requests } = await serve(cut, { status: 429 }, { status: 503, body: { message: 'down' } })
    await expect(call(client)).rejects.toMatchObject({ code: 'server', status: 503, serviceMessage: 'down' })
    expect(requests).toHaveLength(3)
  })
})

test('A creation is retried after 429, which means that nothing was done', async () => {
  const { client, requests } = await serve(
    { status: 429 },
    {
      status: 201,
      body: { status: 'success', data: { webhook: { id: 'w1' } } },
    },
  )
  expect(await client.webhook.create({ url })).toMatchObject({ status: 'success' })
  expect(requests).toHaveLength(2)
})

test('A check is never repeated, because 429 can be the answer of the receiver', async () => {
  const { client, requests, pauses } = await serve({ status: 429, headers: { 'retry-after': '1' } }, done)
  expect(await failureOf('rate_limited', client.webhook.check('w1'))).toMatchObject({
    status: 429,
    retryAfterMs: 1_000,
  })
  expect({ requests: requests.length, pauses }).toEqual({ requests: 1, pauses: [] })
})

describe.each(once)('A call that %s something', (_, call) => {
  test.each([
    ['a cut connection', cut, 'connection'],
    ['503', { status: 503 }, 'server'],
  ] as const)('is not retried after %s, when it may have been done', async (_, fault, code) => {
    const { client, requests } = await serve(fault, oneWebhook())
    await failureOf(code, call(client))
    expect(requests).toHaveLength(1)
  })
})

describe('The pause before a retry', () => {
  const pausesAfter = async (status: number, headers: Record<string, string>) => {
    const { client, pauses, requests } = await serve({ status, headers }, oneWebhook())
    const outcome = await client.webhook.get('w1').then(
      () => 'success',
      ({ retryAfterMs }) => retryAfterMs,
    )
    return { pauses, requests: requests.length, outcome }
  }

  test.each([
    [429, { 'retry-after': '7' }, 7_000],
    [503, { 'retry-after': '60' }, 60_000],
    [429, { 'retry-after': '0' }, 0],
    [429, { 'x-ratelimit-retry-after': '3' }, 3_000],
    [429, { 'retry-after': '2', 'x-ratelimit-retry-after': '30' }, 2_000],
    [429, { 'retry-after': new Date(0).toUTCString() }, 0],
  ])('after %d with %o is %d ms', async (status, headers, ms) => {
    expect(await pausesAfter(status, headers as Record<string, string>)).toEqual({
      pauses: [ms],
      requests: 2,
      outcome: 'success',
    })
  })

  test('lasts until the date that the service sends', async () => {
    const { pauses } = await pausesAfter(503, { 'retry-after': new Date(Date.now() + 20_000).toUTCString() })
    expect(pauses[0]).toBeGreaterThan(17_000)
    expect(pauses[0]).toBeLessThanOrEqual(20_000)
  })

  test.each([
    [429, { 'retry-after': 'soon' }],
    [429, { 'retry-after': 'soon 5' }],
    [429, { 'retry-after': '-5' }],
    [429, { 'retry-after': 'Fri, the 13th' }],
    [503, { 'x-ratelimit-retry-after': '50' }],
  ])('after %d with %o follows the default schedule', async (status, headers) => {
    const { pauses } = await pausesAfter(status, headers as Record<string, string>)
    expect(pauses).toEqual([expect.any(Number)])
    expect(pauses[0]).toBeLessThanOrEqual(500)
  })

  test('is left to the caller if it is longer than a minute', async () => {
    expect(await pausesAfter(429, { 'retry-after': '61' })).toEqual({ pauses: [], requests: 1, outcome: 61_000 })
  })
})

test('The option retries sets the number of retries', async () => {
  const { baseUrl, requests } = await serve({ status: 503 })
  await failureOf('server', patientClient({ baseUrl, retries: 0 }).client.webhook.get('w1'))
  expect(requests).toHaveLength(1)
  await failureOf('server', patientClient({ baseUrl, retries: 4 }).client.webhook.get('w1'))
  expect(requests).toHaveLength(6)
})

describe('A deletion whose retry finds nothing', () => {
  const gone = { status: 404, body: { status: 'fail', message: 'not found' } }

  test.each([
    ['a cut connection', cut],
    ['503', { status: 503 }],
  ])('succeeds after %s', async (_, fault) => {
    const { client } = await serve(fault, gone)
    expect(await client.webhook.delete('w1')).toEqual({ status: 'success' })
  })

  test('fails after 429, which means that nothing was done', async () => {
    const { client } = await serve({ status: 429 }, gone)
    await failureOf('not_found', client.webhook.delete('w1'))
  })

  test('differs from an update, which fails', async () => {
    const { client } = await serve(cut, gone)
    await failureOf('not_found', client.webhook.update('w1', { url }))
  })
})

describe('The error for a service that cannot be reached', () => {
  test('contains the reason', async () => {
    const { baseUrl, server } = await serve()
    await new Promise((resolve) => server.close(resolve))
    const { client } = patientClient({ baseUrl, retries: 1 })
    const error = await failureOf('connection', client.webhook.get('w1'))
    expect(error).toMatchObject({ message: 'webhook.get: no answer: ECONNREFUSED', path: '/api/webhooks/w1' })
    expect(error.status).toBeUndefined()
  })

  test("leaves out the credentials that the error of a user's fetch contains", async () => {
    async function fetch(_: string, init: RequestInit): Promise<Response> {
      throw Object.assign(new Error(`cannot send ${JSON.stringify(init.headers)}`), { config: init })
    }
    const { client } = patientClient({ baseUrl: 'https://api.example.com', fetch })
    const error = await failureOf('connection', client.webhook.get('w1'))
    expect(error.message).toContain('"stream-secret-key":"[secret]"')
  })

  test.each([undefined, null, 'offline', 7])('contains the reason if fetch rejects with %o', async (reason) => {
    const { client } = patientClient({ baseUrl: 'https://api.example.com', fetch: () => Promise.reject(reason) })
    expect((await failureOf('connection', client.webhook.get('w1'))).message).toBe(`webhook.get: no answer: ${reason}`)
  })
})

test('Each attempt sends the credentials', async () => {
  const { client, requests } = await serve(cut, oneWebhook())
  await client.webhook.get('w1')
  expect(requests.map(({ headers }) => headers['stream-secret-key'])).toEqual([keyPair.secretKey, keyPair.secretKey])
})
