import type { MediaEvent, Receiver, ReceiverOptions } from '../../src/index.ts'
import { urlToken } from '../../src/index.ts'

export const secret = 'url-token-4b81'
export const url = `/webhooks/media?token=${secret}`
export const genuine: Partial<ReceiverOptions> = { verify: urlToken({ secret }) }

/** A payload whose media id is of the wrong type for this version. */
export const future =
  '{"type":"encoding.finished","media_id":{"id":"m1"},"title":"A title", "emitted_at":"2026-03-01T12:00:00Z"}'

/** Runs a function as a later version of this package would, which can parse `future`. */
export async function upgraded<T>(run: () => Promise<T>): Promise<T> {
  const parse = JSON.parse
  JSON.parse = (text: string) => {
    const value = parse(text)
    return typeof value?.media_id === 'object' ? { ...value, media_id: value.media_id.id } : value
  }
  try {
    return await run()
  } finally {
    JSON.parse = parse
  }
}

/** Makes a receiver over a fresh inbox. It is closed with the test. */
export type OpenReceiver = (options: Partial<ReceiverOptions>) => Promise<Receiver>

/** Opens a receiver whose handler keeps the events that it gets. */
export async function opened(open: OpenReceiver, options: Partial<ReceiverOptions> = genuine) {
  const receiver = await open(options)
  const handled: MediaEvent[] = []
  receiver.onAny((event) => void handled.push(event))
  return { receiver, deadLetters: receiver.inbox.deadLetters, handled }
}
