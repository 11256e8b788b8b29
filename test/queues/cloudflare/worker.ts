import type { MessageBatch, Queue } from '@cloudflare/workers-types'
import { fetchHandler } from '../../../adapters/fetch.ts'
import { durableObjectStore, type ObjectNamespace } from '../../../src/inbox/durable-object/cloudflare.ts'
import { type QueueMessage, queueInbox } from '../../../src/inbox/queue.ts'
import { createReceiver, type Receiver, unverified } from '../../../src/index.ts'

export { StoreObject } from '../../../src/inbox/durable-object/cloudflare.ts'

interface Env {
  readonly EVENTS: Queue<QueueMessage>
  readonly MEDIA_KEYS: ObjectNamespace
  /** The place to which the handlers report their runs. */
  readonly EVIDENCE: string
}

let receiver: Receiver | undefined

function receiverOf({ EVENTS, MEDIA_KEYS, EVIDENCE }: Env): Receiver {
  receiver ??= createReceiver({
    verify: unverified(),
    inbox: queueInbox({
      send: (message) => EVENTS.send(message),
      store: durableObjectStore({ namespace: MEDIA_KEYS }),
      leaseMs: 1_000,
    }),
    retry: { baseMs: 1 },
  }).onAny(async ({ type, mediaId, qualities, title }, { attempt }) => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (title === 'fails once' && attempt === 1) throw new Error('as asked')
    if (title === 'fails') throw new Error('as asked')
    await fetch(EVIDENCE, { method: 'POST', body: `${type} ${mediaId} ${qualities}` })
  })
  return receiver
}

async function reportDead(messages: MessageBatch<QueueMessage>['messages'], { EVIDENCE }: Env): Promise<void> {
  for (const { body } of messages) await fetch(EVIDENCE, { method: 'POST', body: `dead ${body.mediaId}` })
}

export default {
  fetch: fetchHandler(receiverOf),
  async queue({ queue, messages }: MessageBatch, env: Env): Promise<void> {
    if (queue === 'dead-letters') return reportDead(messages as MessageBatch<QueueMessage>['messages'], env)
    const handle = async (message: (typeof messages)[number]) => {
      const result = await receiverOf(env).handle(message.body, { attempt: message.attempts })
      if (result.status === 'done') message.ack()
      else message.retry({ delaySeconds: result.status === 'retry' ? Math.ceil(result.delayMs / 1_000) : 0 })
    }
    await Promise.all(messages.map(handle))
  },
}
