import { fetchHandler } from '../../../adapters/fetch.ts'
import { durableObjectStore, type ObjectNamespace } from '../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, memoryInbox, unverified } from '../../../src/index.ts'

// A worker whose isolates have an inbox each, and one store.

export { StoreObject } from '../../../src/inbox/durable-object/cloudflare.ts'

interface Env {
  readonly KEYS: ObjectNamespace
  /** The URL that gets the media id of each event that is handled. */
  readonly HANDLED: string
}

const handler = fetchHandler(({ KEYS, HANDLED }: Env) =>
  createReceiver({
    verify: unverified(),
    ack: 'handled',
    inbox: memoryInbox({ store: durableObjectStore({ namespace: KEYS }) }),
  }).onAny(({ mediaId }) => fetch(HANDLED, { method: 'POST', body: mediaId })),
)

export default {
  fetch: (request: Request, env: Env, context: unknown): Promise<Response> => handler(request, env, context),
}
