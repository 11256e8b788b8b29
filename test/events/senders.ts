import * as z from 'zod/mini'
import { createReceiver, defineSender, type Receiver, unverified } from '../../src/index.ts'
import { deliver } from '../../src/testing/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'

/** A sender such as Mux: an id of its own, and data in a field. */
export const mux = defineSender({
  name: 'mux',
  events: {
    'video.asset.ready': z.object({ id: z.string(), duration: z.optional(z.number()) }),
    'video.asset.errored': z.object({ id: z.string(), errors: z.object({ messages: z.array(z.string()) }) }),
  },
  read: ({ type, id, created_at, data }) => ({
    type,
    mediaId: data.object?.id ?? data.id,
    id,
    emittedAt: created_at,
    data,
  }),
})

export const ready = (fields: object = {}) => ({
  type: 'video.asset.ready',
  id: 'event-1',
  created_at: '2026-03-01T12:00:00.123456Z',
  data: { id: 'asset-1', duration: 7 },
  ...fields,
})

/** Makes a receiver for any sender whose handler keeps what it gets. */
export function receiving(sender: unknown, options: object = {}) {
  const { logger, lines } = recordingLogger()
  const receiver = createReceiver({ sender, verify: unverified(), logger, ...options } as never) as Receiver
  // biome-ignore lint/suspicious/noExplicitAny: events of any sender
  const handled: any[] = []
  receiver.onAny((event) => void handled.push(event))
  const send = async (payload: object | string, headers?: Record<string, string>) => {
    const sent = await deliver(receiver, typeof payload === 'string' ? payload : JSON.stringify(payload), {
      ...(headers && { headers }),
    })
    await sent.handled
    return sent
  }
  return { receiver, handled, send, lines, deadLetters: receiver.inbox.deadLetters }
}
