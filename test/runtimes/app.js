import { createReceiver, hmacSignature, standardWebhooks, urlToken } from 'media-webhooks'
import { fetchHandler } from 'media-webhooks/fetch'

const handled = []

const verifiers = {
  '/url-token': urlToken({ secret: 'a-secret' }),
  '/hmac': hmacSignature({ secret: 'a-secret', header: 'x-signature' }),
  '/standard-webhooks': standardWebhooks({ secret: 'whsec_YS1zZWNyZXQtb2YtMjQtYnl0ZXM=' }),
}

const handlers = Object.fromEntries(
  Object.entries(verifiers).map(([path, verify]) => {
    const receiver = createReceiver({ verify, retry: { baseMs: 50 }, handlerTimeoutMs: 400, logger: silent() })
    receiver.onAny(async ({ mediaId, title }, { attempt }) => {
      // Long after the acknowledgement, so that only a runtime that was asked to stay gets there.
      await new Promise((resolve) => setTimeout(resolve, 50))
      if (title === 'fails once' && attempt === 1) throw new Error('as asked')
      if (title === 'hangs once' && attempt === 1) await new Promise(() => {})
      handled.push(mediaId)
    })
    return [path, fetchHandler(receiver)]
  }),
)

/** What each runtime serves: a receiver for each verifier, and the list of what was handled. */
export function serve(request, ...context) {
  const { pathname } = new URL(request.url)
  if (pathname === '/handled') return Response.json(handled)
  return handlers[pathname](request, ...context)
}

function silent() {
  const nothing = () => {}
  return { debug: nothing, info: nothing, warn: nothing, error: nothing }
}
