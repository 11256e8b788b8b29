import { fetchHandler } from '../../../../adapters/fetch.ts'
import {
  durableObjectInbox,
  inboxObject,
  type ObjectNamespace,
  type ObjectState,
  type ObjectTransactional,
} from '../../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, hmacSignature, type InboxDefinition, type MediaEvent } from '../../../../src/index.ts'
import { silent } from '../../../support/silent.ts'
import { expectEnds, withinMs } from '../../kill/expect-ends.ts'

// A worker whose handlers tell the test what they do. Some events say in their title what their handlers do to them.

interface Env {
  readonly MEDIA_INBOX: ObjectNamespace
  /** The name of this workerd. */
  readonly NAME: string
  /** The URL of the test's evidence. */
  readonly EVIDENCE: string
  readonly SHARDS: string
  /** The share of runs that fail. */
  readonly UNLUCKY: string
  readonly ATTEMPTS?: string
  readonly WITHIN?: string
  /** Objects cannot make their receiver. */
  readonly BROKEN?: string
}

/** The context of handlers in an object. */
interface InObject extends Env {
  /** Tells this instance of the object from others. */
  readonly instance: string
  abort(): void
}

const signature = { secret: 'signing-secret-7d1f', header: 'x-signature', timestamp: { header: 'x-timestamp' } }

const tell = (env: Env, path: string, body: object) =>
  fetch(`${env.EVIDENCE}${path}`, { method: 'POST', body: JSON.stringify(body) })

function makeReceiver(env: Env, inbox: InboxDefinition<ObjectTransactional>) {
  if (env.BROKEN && 'instance' in env) throw new Error('there is no secret')
  const receiver = createReceiver({
    verify: hmacSignature(signature),
    inbox,
    retry: { attempts: Number(env.ATTEMPTS ?? 10), baseMs: 10 },
    logger: silent,
  })
  const unlucky = (share = Number(env.UNLUCKY)) => {
    if (Math.random() < share) throw new Error('unlucky')
  }
  const run = async (
    handler: string,
    event: Pick<MediaEvent, 'mediaId'>,
    attempt: number,
    work: () => Promise<void>,
  ) => {
    const { instance } = env as InObject
    const id = crypto.randomUUID()
    await tell(env, '/begin', { process: env.NAME, instance, handler, key: event.mediaId, attempt, id })
    try {
      await work()
      await tell(env, '/end', { id })
    } catch (error) {
      await tell(env, '/end', { id, failed: true })
      throw error
    }
  }
  const pause = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 6))
  receiver.onAny(
    (event, { attempt }) =>
      run('first', event, attempt, async () => {
        if (event.title === 'aborts') (env as InObject).abort()
        if (event.title === 'fails always') throw new Error('as asked')
        if (event.title === 'fails once' && attempt === 1) throw new Error('as asked')
        await pause()
      }),
    { name: 'first' },
  )
  receiver.onAny(
    (event, { attempt }) =>
      run('second', event, attempt, async () => {
        await pause()
        unlucky()
      }),
    { name: 'second' },
  )
  receiver.onAny(
    async ({ mediaId }, { transaction }) => {
      await pause()
      unlucky()
      await transaction((sql) => {
        sql.exec('INSERT INTO written VALUES (?)', mediaId)
        unlucky(Number(env.UNLUCKY) / 2)
      })
      unlucky(Number(env.UNLUCKY) / 2)
    },
    { name: 'writes' },
  )
  const report = (mediaId: string, { attempt, transaction }: ObjectTransactional & { attempt: number }) =>
    run('overdue', { mediaId }, attempt, () =>
      transaction((sql) => {
        sql.exec('INSERT INTO overdue VALUES (?)', mediaId)
        unlucky()
      }),
    )
  expectEnds(receiver, report, Number(env.WITHIN ?? withinMs))
  return receiver
}

/** The parts of an object's state that only the test uses. */
interface State extends ObjectState {
  readonly storage: ObjectState['storage'] & { getAlarm(): Promise<number | null> }
  abort(reason: string): void
}

const limits = { maxWaiting: 1_000_000 }

/** The tables that the handlers write to. */
const tables = ['written', 'overdue']

export class MediaInbox extends inboxObject(makeReceiver, limits) {
  readonly #state: State
  readonly #env: InObject

  constructor(state: State, env: Env) {
    for (const table of tables) state.storage.sql.exec(`CREATE TABLE IF NOT EXISTS ${table} (media TEXT)`)
    const inObject = { ...env, instance: crypto.randomUUID(), abort: () => state.abort('as asked') }
    super(state, inObject)
    this.#state = state
    this.#env = inObject
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    const table = tables.find((name) => pathname === `/${name}`)
    if (table !== undefined) return Response.json(this.#state.storage.sql.exec(`SELECT media FROM ${table}`).toArray())
    if (pathname === '/alarm') return Response.json(await this.#state.storage.getAlarm())
    if (pathname !== '/abort') return super.fetch(request)
    await tell(this.#env, '/aborted', { instance: this.#env.instance })
    this.#state.abort('as asked')
    return new Response()
  }
}

const own = (env: Env) =>
  makeReceiver(env, durableObjectInbox({ namespace: env.MEDIA_INBOX, shards: Number(env.SHARDS) }))
const handler = fetchHandler(own)
let receiver: ReturnType<typeof makeReceiver> | undefined

/** The questions of the test, besides deliveries. */
async function control(url: URL, env: Env): Promise<unknown> {
  receiver ??= own(env)
  const { inbox } = receiver
  const key = url.searchParams.get('key') ?? ''
  const ask = (shard: number, path: string) => {
    const id = env.MEDIA_INBOX.idFromName(`media-webhooks-${shard}`)
    return env.MEDIA_INBOX.get(id).fetch(`https://object${path}`, { method: 'POST', body: '' })
  }
  const read = async (table: string) => {
    const shards = Array.from({ length: Number(env.SHARDS) }, (_, shard) => ask(shard, table))
    const rows = await Promise.all(shards.map(async (answer) => (await answer).json() as Promise<{ media: string }[]>))
    return rows.flat().map(({ media }) => media)
  }
  const steps: Record<string, () => unknown> = {
    '/stats': () => inbox.stats(),
    '/dead-letters': () => inbox.deadLetters.list(),
    '/replay': () => inbox.deadLetters.replay(key),
    '/discard': () => inbox.deadLetters.discard(key),
    '/expected': () => inbox.expected?.(),
    '/written': () => read('/written'),
    '/overdue': () => read('/overdue'),
    '/alarm': async () => (await ask(Number(key), '/alarm')).json(),
    '/abort': () =>
      ask(Number(key), '/abort').then(
        () => 'not aborted',
        () => 'aborted',
      ),
  }
  return steps[url.pathname]?.()
}

export default {
  async fetch(request: Request, env: Env, context: unknown): Promise<Response> {
    const url = new URL(request.url)
    if (url.pathname === '/') return handler(request, env, context)
    try {
      return Response.json({ result: await control(url, env) })
    } catch (error) {
      return Response.json({ error: `${error}` })
    }
  },
}
