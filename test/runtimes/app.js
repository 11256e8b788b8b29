import { createReceiver, hmacSignature, standardWebhooks, urlToken } from 'media-webhooks'
import { fetchHandler } from 'media-webhooks/fetch'
import { useClient } from './client.js'

const handled = []

const onWorkers = globalThis.navigator?.userAgent === 'Cloudflare-Workers'
const acknowledging = onWorkers ? { ack: 'handled' } : { retry: { baseMs: 50 } }

const verifiers = {
  '/url-token': urlToken({ secret: 'a-secret' }),
  '/hmac': hmacSignature({ secret: 'a-secret', header: 'x-signature' }),
  '/standard-webhooks': standardWebhooks({ secret: 'whsec_YS1zZWNyZXQtb2YtMjQtYnl0ZXM=' }),
}

const handlers = Object.fromEntries(
  Object.entries(verifiers).map(([path, verify]) => {
    const receiver = createReceiver({ verify, ...acknowledging, handlerTimeoutMs: 400, logger: silent() })
    receiver.onAny(async ({ mediaId, title }, { attempt }) => {
      // Long after the acknowledgement, if it does not wait: only a runtime that was asked to stay gets there.
      await new Promise((resolve) => setTimeout(resolve, 50))
      if (title === 'fails once' && attempt === 1) throw new Error('as asked')
      if (title === 'hangs once' && attempt === 1) await new Promise(() => {})
      handled.push(mediaId)
    })
    return [path, fetchHandler(receiver)]
  }),
)

/**
 * The program of each runtime: a receiver for each verifier, the list of what was handled, and a user of the client.
 */
export async function serve(request, ...context) {
  const url = new URL(request.url)
  if (url.pathname === '/handled') return Response.json(handled)
  if (url.pathname === '/client') return Response.json(await useClient(url))
  return handlers[url.pathname](request, ...context)
}

function silent() {
  const nothing = () => {}
  return { debug: nothing, info: nothing, warn: nothing, error: nothing }
}
