import { Redis } from '@upstash/redis/cloudflare'
import { createReceiver, memoryInbox, unverified } from 'media-webhooks'
import { fetchHandler } from 'media-webhooks/fetch'
import { redisStore } from 'media-webhooks/idempotency/redis'

const stores = new Map()

function storeOf({ URL: url, TOKEN: token }, prefix) {
  if (!stores.has(prefix)) {
    stores.set(prefix, redisStore({ client: new Redis({ url, token }), prefix, timeoutMs: 1_500 }))
  }
  return stores.get(prefix)
}

/** The media whose events were handled here. */
const handled = []

const webhook = fetchHandler((env) =>
  createReceiver({
    verify: unverified(),
    ack: 'handled',
    inbox: memoryInbox({ store: storeOf(env, 'receiver:') }),
    handlers: { 'encoding.finished': ({ mediaId }) => void handled.push(mediaId) },
  }),
)

/** Runs one step of a store. */
async function step(request, env) {
  const { prefix, name, parameters } = await request.json()
  try {
    return Response.json({ answer: await storeOf(env, prefix)[name](...parameters) })
  } catch ({ name, code, message }) {
    return Response.json({ name, code, message }, { status: 500 })
  }
}

export default {
  fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    if (pathname === '/webhook') return webhook(request, env, context)
    return pathname === '/step' ? step(request, env) : Response.json(handled)
  },
}
