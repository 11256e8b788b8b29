import { fetchHandler } from '../../../adapters/fetch.ts'
import {
  durableObjectInbox,
  inboxObject,
  type ObjectNamespace,
  type ObjectState,
  type ObjectTransactional,
} from '../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, type InboxDefinition, unverified } from '../../../src/index.ts'

interface Env {
  readonly MEDIA_INBOX: ObjectNamespace
}

/** Makes the receiver. Its handler records its runs in the object's storage, as part of its transaction. */
const makeReceiver = (_env: Env, inbox: InboxDefinition<ObjectTransactional>) =>
  createReceiver({ verify: unverified(), inbox, retry: { baseMs: 50 } }).onAny(
    async ({ type, mediaId, qualities, title }, { attempt, transaction }) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (title === 'fails once' && attempt === 1) throw new Error('as asked')
      await transaction((sql) => void sql.exec('INSERT INTO handled VALUES (?)', `${type} ${mediaId} ${qualities}`))
    },
  )

export class MediaInbox extends inboxObject(makeReceiver) {
  readonly #state: ObjectState

  constructor(state: ObjectState, env: Env) {
    state.storage.sql.exec('CREATE TABLE IF NOT EXISTS handled (line TEXT)')
    super(state, env)
    this.#state = state
  }

  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname !== '/handled') return super.fetch(request)
    return Response.json(this.#state.storage.sql.exec('SELECT line FROM handled').toArray())
  }
}

const shards = 16

async function handled({ MEDIA_INBOX }: Env): Promise<readonly string[]> {
  const ask = async (_: unknown, shard: number) => {
    const object = MEDIA_INBOX.get(MEDIA_INBOX.idFromName(`media-webhooks-${shard}`))
    const answer = await object.fetch('https://object/handled', { method: 'POST', body: '' })
    return (await answer.json()) as { line: string }[]
  }
  return (await Promise.all(Array.from({ length: shards }, ask))).flat().map(({ line }) => line)
}

const handler = fetchHandler((env: Env) =>
  makeReceiver(env, durableObjectInbox({ namespace: env.MEDIA_INBOX, shards })),
)

export default {
  async fetch(request: Request, env: Env, context: unknown): Promise<Response> {
    if (new URL(request.url).pathname === '/handled') return Response.json(await handled(env))
    return handler(request, env, context)
  },
}
