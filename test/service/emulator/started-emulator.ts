import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { nodeHandler } from '../../../adapters/node.ts'
import type { FlagName } from '../../../src/events/media-service/catalogue.ts'
import { createReceiver, type MediaEvent, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { createEmulator, type Emulator, type EmulatorOptions } from '../../../src/service/emulator/index.ts'
import { subscriptionFlags, type Webhook } from '../../../src/service/emulator/workspace/webhooks.ts'
import { serveWebhook } from '../../support/serve.ts'
import { silent } from '../../support/silent.ts'
import { type Answered, ask } from './ask.ts'

/** Starts an emulator for the duration of the test, a thousand times as fast as the service. */
export async function emulate(options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await createEmulator({ timeScale: 0.001, ...options })
  onTestFinished(() => emulator.close())
  return emulator
}

/** Starts a real receiver for the duration of the test. It records events before it acknowledges them. */
export async function receive(options: Partial<ReceiverOptions> = {}) {
  const events: MediaEvent[] = []
  const receiver = createReceiver({ verify: unverified(), ack: 'handled', logger: silent, ...options })
  receiver.onAny((event) => void events.push(event), { tests: true })
  const url = await serveWebhook(nodeHandler(receiver))
  onTestFinished(async () => void (await receiver.close()))
  return { url, events, types: () => events.map(({ type }) => type).toSorted() }
}

/** Calls the service's API of an emulator. */
export function api({ url, credentials }: Emulator, method: string, path: string, body?: object): Promise<Answered> {
  return ask(`${url}/api${path}`, { method, headers: { authorization: `Bearer ${credentials.accessToken}` }, body })
}

/** Creates a webhook through the API. */
export async function subscribe(
  emulator: Emulator,
  url: string,
  flags: readonly FlagName[] = subscriptionFlags,
): Promise<Webhook> {
  const selected = Object.fromEntries(flags.map((flag) => [flag, true]))
  const { body } = await api(emulator, 'POST', '/webhooks', { url, ...selected })
  return body.data.webhook
}

/** Returns the current state of a webhook. */
export async function webhookOf(emulator: Emulator, { id }: Webhook): Promise<Webhook> {
  return (await api(emulator, 'GET', `/webhooks/${id}`)).body.data.webhook
}

/** Creates a listener that answers with each status in turn and then repeats the last one. */
export function answering(...statuses: readonly number[]): RequestListener {
  const left = [...statuses]
  return (request, response) => {
    request.resume()
    response.writeHead((left.length > 1 ? left.shift() : left[0]) ?? 200).end()
  }
}
