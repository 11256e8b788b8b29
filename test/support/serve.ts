import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { type Listening, listen } from './listen.ts'

/** Listens until the end of the test. */
export async function listenUntilEnd(listener: RequestListener): Promise<Listening> {
  const listening = await listen(listener)
  onTestFinished(listening.close)
  return listening
}

/** Serves a listener until the end of the test. Resolves with its origin. */
export const serve = async (listener: RequestListener) => (await listenUntilEnd(listener)).origin

/** Serves a listener until the end of the test. Resolves with the URL of its webhook. */
export const serveWebhook = async (listener: RequestListener) => `${await serve(listener)}/webhooks/media`
