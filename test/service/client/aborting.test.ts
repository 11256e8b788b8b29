import { getEventListeners } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sleep } from '../../../src/internal/timers.ts'
import { createClient } from '../../../src/service/client/index.ts'
import { failureOf, hang, keyPair, oneWebhook, patientClient, serve } from './scripted-service.ts'

describe('A call times out', () => {
  test.each([
    ['the service never answers', hang],
    [
      'the service never ends its answer',
      (_: unknown, response: { write(text: string): void }) => response.write('{"status":'),
    ],
  ])('if %s', async (_, answer) => {
    const { baseUrl } = await serve(answer)
    const { client } = patientClient({ baseUrl, timeoutMs: 60, retries: 0 })
    const error = await failureOf('timeout', client.webhook.get('w1'))
    expect(error.message).toBe('webhook.get: no answer within 60 ms')
  })
})

describe("A call through a user's fetch that ignores its signal", () => {
  const baseUrl = 'https://api.example.com'
  const never = () => new Promise<never>(() => {})

  test('times out before the answer begins', async () => {
    const { client } = patientClient({ baseUrl, timeoutMs: 30, retries: 1, fetch: never })
    await failureOf('timeout', client.webhook.get('w1'))
  })

  test('times out in the middle of the answer, whose stream is cancelled', async () => {
    let cancelled = 0
    const fetch = async () => new Response(new ReadableStream({ cancel: () => void cancelled++ }))
    const { client } = patientClient({ baseUrl, timeoutMs: 30, retries: 0, fetch })
    await failureOf('timeout', client.webhook.get('w1'))
    expect(cancelled).toBe(1)
  })

  test('times out, and cancels the stream of an answer that begins later', async () => {
    let cancelled = () => {}
    const done = new Promise<void>((resolve) => {
      cancelled = resolve
    })
    let answer: (response: Response) => void = () => {}
    const late = new Promise<Response>((resolve) => {
      answer = resolve
    })
    const { client } = patientClient({ baseUrl, timeoutMs: 30, retries: 0, fetch: () => late })
    await failureOf('timeout', client.webhook.get('w1'))
    answer(new Response(new ReadableStream({ cancel: cancelled })))
    await done
  })

  test('is aborted', async () => {
    const controller = new AbortController()
    const { client } = patientClient({ baseUrl, fetch: never })
    const call = client.webhook.get('w1', { signal: controller.signal })
    controller.abort()
    await failureOf('aborted', call)
  })
})

describe('A signal', () => {
  test('that is already aborted keeps the request from being sent', async () => {
    const { client, requests } = await serve(oneWebhook())
    const reason = new Error('no longer needed')
    const error = await failureOf('aborted', client.webhook.get('w1', { signal: AbortSignal.abort(reason) }))
    expect(error.cause).toBe(reason)
    expect(requests).toEqual([])
  })

  test('ends a running request and its retries', async () => {
    const controller = new AbortController()
    const { client, requests } = await serve(() => controller.abort())
    const error = await failureOf('aborted', client.webhook.get('w1', { signal: controller.signal }))
    expect(error).toMatchObject({ method: 'GET', path: '/api/webhooks/w1', message: 'webhook.get: aborted' })
    expect(requests).toHaveLength(1)
  })

  test('ends a pause', async () => {
    const controller = new AbortController()
    const { baseUrl, requests } = await serve((_, response) => {
      response.writeHead(429, { 'retry-after': '60' }).end()
      response.once('close', () => setImmediate(() => controller.abort()))
    })
    const client = createClient(keyPair, { baseUrl })
    await failureOf('aborted', client.webhook.get('w1', { signal: controller.signal }))
    expect(requests).toHaveLength(1)
  })

  test('ends an iteration', async () => {
    const controller = new AbortController()
    const { client, requests } = await serve({
      body: { data: { webhooks: Array.from({ length: 100 }, (_, index) => ({ id: `w${index}` })), total: 1_000 } },
    })
    async function iterate() {
      for await (const _ of client.webhook.listAll({}, { signal: controller.signal })) controller.abort()
    }
    await failureOf('aborted', iterate())
    expect(requests).toHaveLength(1)
  })
})

test('A call leaves neither a timer nor a listener behind', async () => {
  const { baseUrl } = await serve({ status: 429, headers: { 'retry-after': '0' } }, oneWebhook())
  const [set, clear] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')]
  onTestFinished(() => void vi.restoreAllMocks())
  const { signal } = new AbortController()
  const timeoutMs = 59_999
  await createClient(keyPair, { baseUrl, timeoutMs }).webhook.get('w1', { signal })

  expect(getEventListeners(signal, 'abort')).toEqual([])
  const timers = set.mock.results.filter((_, index) => set.mock.calls[index]?.[1] === timeoutMs)
  const cleared = new Set(clear.mock.calls.map(([timer]) => timer))
  expect(timers.map(({ value }) => cleared.has(value))).toEqual([true, true])
})

const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

test('A pause that ends early leaves neither a timer nor a listener behind', async () => {
  const controller = new AbortController()
  const before = timers()
  const paused = sleep(60_000, controller.signal)
  expect(timers()).toBe(before + 1)
  controller.abort()
  await paused
  expect(timers()).toBe(before)
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
})
