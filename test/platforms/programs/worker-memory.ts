import { Redis } from '@upstash/redis/cloudflare'
import { fetchHandler } from '../../../adapters/fetch.ts'
import { redisStore } from '../../../src/idempotency/redis.ts'
import { createReceiver, memoryInbox, unverified } from '../../../src/index.ts'

interface Env {
  /** The place in which a handler records its successful runs. */
  readonly RECORDER: string
  /** The Redis that the isolates share; empty for none. */
  readonly REDIS_URL: string
  readonly REDIS_TOKEN: string
}

function makeReceiver({ RECORDER, REDIS_URL: url, REDIS_TOKEN: token }: Env) {
  const inbox = url === '' ? memoryInbox() : memoryInbox({ store: redisStore({ client: new Redis({ url, token }) }) })
  return createReceiver({ verify: unverified(), inbox, ack: 'handled' }).onAny(
    async ({ type, mediaId, qualities, title }, { attempt }) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (title === 'fails once' && attempt === 1) throw new Error('as asked')
      await fetch(RECORDER, { method: 'POST', body: `${type} ${mediaId} ${qualities}` })
    },
  )
}

export default { fetch: fetchHandler(makeReceiver) }
