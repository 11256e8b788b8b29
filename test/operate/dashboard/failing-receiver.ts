import { expect, onTestFinished } from 'vitest'
import { createReceiver, memoryInbox, type Receiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { makeDelivery, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'

/** Makes a receiver for the duration of the test. An event has two attempts. */
export function receiverWith(options: Partial<ReceiverOptions> = {}): Receiver {
  const inbox = memoryInbox({ maxDeadLetters: 20_000, maxWaiting: 20_000 })
  const retry = { attempts: 2, baseMs: 1 }
  const receiver = createReceiver({ verify: unverified(), logger: silent, inbox, retry, ...options })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
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
  expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(count)

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
