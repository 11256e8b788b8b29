import { createReceiver, urlToken } from 'media-webhooks'
import { fetchHandler } from 'media-webhooks/fetch'

interface Env {
  readonly WEBHOOK_TOKEN: string
}

interface Context {
  waitUntil(promise: Promise<unknown>): void
}

/** Called at the isolate's first delivery, because the secrets are not available earlier. */
function makeReceiver({ WEBHOOK_TOKEN }: Env) {
  const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), ack: 'handled' })
  receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
    console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
  })
  return receiver
}

const handle = fetchHandler(makeReceiver)

export default {
  async fetch(request: Request, env: Env, context: Context): Promise<Response> {
    if (new URL(request.url).pathname !== '/webhooks/media') return new Response('not found', { status: 404 })
    // The context lets slow handlers finish after the answer.
    return handle(request, env, context)
  },
}
