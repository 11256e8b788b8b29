import { createServer, type RequestListener } from 'node:http'
import { afterEach, expect } from 'vitest'
import { createReceiver, memoryInbox, type Receiver, type ReceiverOptions, unverified } from '../../src/index.ts'
import { makeDelivery, samplePayload } from '../../src/testing/index.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Runs a function after the test. */
export const afterTest = (cleanup: () => unknown) => void cleanups.push(cleanup)

export const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Makes a receiver for the duration of the test. An event has two attempts. */
export function receiverWith(options: Partial<ReceiverOptions> = {}): Receiver {
  const inbox = memoryInbox({ maxDeadLetters: 20_000, maxWaiting: 20_000 })
  const retry = { attempts: 2, baseMs: 1 }
  const receiver = createReceiver({ verify: unverified(), logger: silent, inbox, retry, ...options })
  afterTest(() => receiver.close({ timeoutMs: 1_000 }))
  return receiver
}

let emitted = 0

/** Delivers an event of its own. */
export async function send(receiver: Receiver, mediaId: string, payload: object = {}): Promise<void> {
  const emittedAt = new Date(Date.UTC(2026, 2, 1) + emitted++).toISOString()
  const body = { ...samplePayload('encoding.finished', { media_id: mediaId }), emitted_at: emittedAt, ...payload }
  expect((await receiver.receive(await makeDelivery(JSON.stringify(body)))).status).toBe(200)
}

/** Waits until an inbox has so many dead letters. */
export const untilDead = (receiver: Receiver, count: number) =>
  expect.poll(async () => (await receiver.inbox.stats()).deadLetters, { timeout: 60_000 }).toBe(count)

/** Makes a receiver with a handler that fails until it `works`, and dead letters. */
export async function failing(count = 3) {
  const receiver = receiverWith()
  const state = { works: false }
  receiver.on(
    'encoding.finished',
    ({ mediaId }) => {
      if (!state.works) throw new Error(`the catalogue knows no media "${mediaId}"`)
    },
    { name: 'publish' },
  )
  for (let media = 1; media <= count; media++) await send(receiver, `media-${media}`)
  await untilDead(receiver, count)
  const dead = await receiver.inbox.deadLetters.list({ limit: count })
  return { receiver, keys: dead.map(({ key }) => key), state }
}

/** What Hono on Node passes with a request of this machine. */
export const fromHere = { incoming: { socket: { remoteAddress: '127.0.0.1' } } }

/** Serves a listener for the duration of the test, and returns its origin. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterTest(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

/** Sends a form as a browser does, without following the redirect. */
export const post = (
  url: string,
  form: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
) =>
  fetch(url, {
    method: 'POST',
    body: new URLSearchParams(form),
    redirect: 'manual',
    headers: { origin: new URL(url).origin, ...headers },
  })
