import type { MessageBatch, Queue } from '@cloudflare/workers-types'
import { createReceiver, type Receiver, urlToken } from 'media-webhooks'
import { durableObjectStore, type ObjectNamespace } from 'media-webhooks/cloudflare'
import { fetchHandler } from 'media-webhooks/fetch'
import { type QueueMessage, queueInbox } from 'media-webhooks/inbox/queue'

export { StoreObject } from 'media-webhooks/cloudflare'

interface Env {
  readonly WEBHOOK_TOKEN: string
  readonly EVENTS: Queue<QueueMessage>
  readonly MEDIA_KEYS: ObjectNamespace
}

let receiver: Receiver | undefined

/** Creates the isolate's receiver when it is first needed, because the secrets are not available earlier. */
function receiverOf({ WEBHOOK_TOKEN, EVENTS, MEDIA_KEYS }: Env): Receiver {
  receiver ??= createReceiver({
    verify: urlToken({ secret: WEBHOOK_TOKEN }),
    inbox: queueInbox({
      send: (message) => EVENTS.send(message),
      store: durableObjectStore({ namespace: MEDIA_KEYS }),
    }),
  }).on(
    'encoding.finished',
    async ({ mediaId, qualities }) => {
      console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
    },
    { name: 'publish' },
  )
  return receiver
}

const receive = fetchHandler(receiverOf)

export default {
  async fetch(request: Request, env: Env, context: unknown): Promise<Response> {
    if (new URL(request.url).pathname !== '/webhooks/media') return new Response('not found', { status: 404 })
    return receive(request, env, context)
  },

  async queue({ messages }: MessageBatch, env: Env): Promise<void> {
    const handle = async (message: (typeof messages)[number]) => {
      const result = await receiverOf(env).handle(message.body, { attempt: message.attempts })
      if (result.status === 'done') message.ack()
      // The queue can wait for 12 hours at most.
      else if (result.status === 'retry')
        message.retry({ delaySeconds: Math.min(43_200, Math.ceil(result.delayMs / 1_000)) })
      // After its last delivery, a retry moves it to the dead-letter queue.
      else message.retry()
    }
    await Promise.all(messages.map(handle))
  },
}
