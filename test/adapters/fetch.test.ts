import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { bytes, freshBody, signedRequest, url, watchedReceiver } from './receivers.ts'

const target = 'https://example.com/webhooks/media'

const signed = async (signer: Parameters<typeof signedRequest>[1] = bytes) => {
  const { url, init } = await signedRequest(target, signer)
  return new Request(url, init)
}

describe('a platform that has waitUntil', () => {
  const platform = () => {
    const promises: Promise<unknown>[] = []
    return {
      promises,
      // The platforms' own function throws when it is not called as a method.
      waitUntil(promise: Promise<unknown>) {
        this.promises.push(promise)
      },
    }
  }

  test.each<[string, (context: object) => unknown[]]>([
    ['second', (context) => [context]],
    ['third', (context) => [{ A_BINDING: 'value' }, context]],
    ['third (after undefined)', (context) => [undefined, context]],
  ])('is asked to wait for the handling when it is the %s argument', async (_, placed) => {
    const { receiver, handled } = watchedReceiver(bytes)
    const context = platform()
    expect((await fetchHandler(receiver)(await signed(), ...placed(context))).status).toBe(200)
    expect(context.promises).toHaveLength(1)
    await Promise.all(context.promises)
    expect(handled).toHaveLength(1)
  })

  test('is not asked to wait for a rejected delivery', async () => {
    const { receiver } = watchedReceiver(bytes)
    const context = platform()
    const forged = new Request(target, { method: 'POST', body: freshBody() })
    expect((await fetchHandler(receiver)(forged, context)).status).toBe(401)
    expect(context.promises).toHaveLength(0)
  })
})

test.each<[string, unknown[]]>([
  ['nothing', []],
  ['undefined', [undefined, undefined]],
  ['null', [null]],
  ['route parameters', [{ params: Promise.resolve({}) }]],
  ['a waitUntil that is not a function', [{ waitUntil: true }]],
])('works if the platform passes %s', async (_, context) => {
  const { receiver } = watchedReceiver(bytes)
  const response = await fetchHandler(receiver)(await signed(), ...context)
  expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
})

test.each([
  ['needs bytes', bytes],
  ['needs no bytes', url],
])('answers 500 when the body has already been read and the verifier %s', async (_, signer) => {
  const { receiver, handled, lines } = watchedReceiver(signer)
  const request = await signed(signer)
  await request.text()
  const response = await fetchHandler(receiver)(request)
  expect([response.status, await response.json()]).toEqual([500, expect.objectContaining({ code: 'body_consumed' })])
  expect([handled.length, lines.length]).toEqual([0, 1])
})

test('answers 500 while another reader reads the body', async () => {
  const { receiver } = watchedReceiver(bytes)
  const request = await signed()
  request.body?.getReader()
  expect(await (await fetchHandler(receiver)(request)).json()).toMatchObject({ code: 'body_consumed' })
})

test('rejects a request without a body', async () => {
  const { receiver } = watchedReceiver(url)
  const { url: signedUrl } = await signed(url)
  const response = await fetchHandler(receiver)(new Request(signedUrl, { method: 'POST' }))
  expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code: 'malformed' })])
})

test('reports a body as incomplete when reading it fails', async () => {
  const { receiver, reports } = watchedReceiver(bytes)
  let pulls = 0
  const body = new ReadableStream({
    pull(controller) {
      pulls += 1
      if (pulls === 1) controller.enqueue(freshBody())
      else controller.error(new Error('the sender disconnected'))
    },
  })
  const response = await fetchHandler(receiver)(
    new Request(target, { method: 'POST', body, duplex: 'half' } as RequestInit),
  )
  expect(response.status).toBe(400)
  expect(reports.map(({ outcome }) => outcome)).toEqual(['incomplete'])
})

test('stops reading a body above the limit, and tells its source', async () => {
  const { receiver } = watchedReceiver({ ...bytes, maxBodyBytes: 1_000 })
  let pulls = 0
  let cancelled = false
  const body = new ReadableStream({
    pull(controller) {
      pulls += 1
      controller.enqueue(new Uint8Array(600))
    },
    cancel() {
      cancelled = true
    },
  })
  const response = await fetchHandler(receiver)(
    new Request(target, { method: 'POST', body, duplex: 'half' } as RequestInit),
  )
  expect([response.status, cancelled]).toEqual([413, true])
  expect(pulls).toBeLessThanOrEqual(4)
})

test.each([
  ['fetchHandler', fetchHandler],
  ['honoHandler', (receiver: Parameters<typeof honoHandler>[0]) => new Hono().all('*', honoHandler(receiver)).fetch],
])('%s stops reading a body that is too slow, and tells its source', async (_, handlerOf) => {
  const { receiver } = watchedReceiver({ ...bytes, bodyTimeoutMs: 20 })
  let cancelled = false
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    cancel() {
      cancelled = true
    },
  })
  const request = new Request(target, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect([(await handlerOf(receiver)(request)).status, cancelled]).toEqual([400, true])
})

test('answers 413 even if the source of a body above the limit cannot be cancelled', async () => {
  const { receiver } = watchedReceiver({ ...bytes, maxBodyBytes: 1_000 })
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(600)),
    cancel: () => Promise.reject(new Error('the sender disconnected')),
  })
  const request = new Request(target, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect((await fetchHandler(receiver)(request)).status).toBe(413)
})
