import { createReceiver, type InboxDefinition, urlToken } from 'media-webhooks'
import {
  durableObjectInbox,
  inboxObject,
  type ObjectNamespace,
  type ObjectTransactional,
} from 'media-webhooks/cloudflare'
import { fetchHandler } from 'media-webhooks/fetch'

interface Env {
  readonly WEBHOOK_TOKEN: string
  readonly MEDIA_INBOX: ObjectNamespace
}

/** Called in the Worker to accept deliveries, and in each Durable Object to handle their events. */
function makeReceiver({ WEBHOOK_TOKEN }: Env, inbox: InboxDefinition<ObjectTransactional>) {
  const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox })
  receiver.on('encoding.finished', async function publish({ mediaId, qualities }) {
    console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
  })
  return receiver
}

/** The objects' class, named in wrangler.jsonc. */
export class MediaInbox extends inboxObject(makeReceiver) {}

const handle = fetchHandler((env: Env) => makeReceiver(env, durableObjectInbox({ namespace: env.MEDIA_INBOX })))

export default {
  async fetch(request: Request, env: Env, context: unknown): Promise<Response> {
    if (new URL(request.url).pathname !== '/webhooks/media') return new Response('not found', { status: 404 })
    return handle(request, env, context)
  },
}
