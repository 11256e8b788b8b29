import pg from 'pg'
import { WebhookError } from '../../errors.ts'
import { within } from '../../internal/timers.ts'

/** Maximum wait for the client (ms). */
const maxWaitMs = 10_000

/**
 * Makes a pool of one client, for a library that takes a pool and not a client: Prisma's driver adapter, Kysely, TypeORM,
 * Knex. With the client of `context.transaction`, all that the library writes is part of that transaction, and its own
 * transactions become savepoints. `end` and `release` leave the client as it is.
 *
 * One caller has the client at a time; others wait. A query that is sent through the pool while a transaction of the same
 * library is open would wait for it for ever, so it fails after 10 s: use the transaction's object for it.
 *
 * ```ts
 * receiver.on('encoding.finished', (event, { transaction }) =>
 *   transaction(async (client) => {
 *     const prisma = new PrismaClient({ adapter: new PrismaPg(poolOf(client)) })
 *     await prisma.video.update({ where: { id: event.mediaId }, data: { ready: true } })
 *   }),
 * )
 * ```
 */
export const poolOf = (client: pg.PoolClient): pg.Pool => new ClientPool(client)

type ConnectCallback = Parameters<pg.Pool['connect']>[0]

class ClientPool extends pg.Pool {
  readonly #client: pg.PoolClient
  /** Resolves once the client is free again. */
  #free: Promise<void> = Promise.resolve()

  constructor(client: pg.PoolClient) {
    super({ max: 1 })
    this.#client = client
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const taken = this.#take()
    if (callback === undefined) return taken
    taken.then(
      (client) => callback(undefined, client, client.release),
      (error) => callback(error, undefined, () => {}),
    )
    return undefined
  }

  async #take(): Promise<pg.PoolClient> {
    const before = this.#free
    let release = () => {}
    this.#free = new Promise((resolve) => {
      release = resolve
    })
    try {
      await within(maxWaitMs, before, late)
    } catch (error) {
      void before.then(release)
      throw error
    }
    return new Proxy(this.#client, {
      get: (target, name) => (name === 'release' ? () => release() : Reflect.get(target, name, target)),
    })
  }

  override async end(callback?: () => void): Promise<void> {
    callback?.()
  }
}

function late(): never {
  throw new WebhookError(
    'invalid_transaction',
    'poolOf: the client of context.transaction was not free within 10 s, as a query waits for a transaction that waits ' +
      "for the query. Use the transaction's own object in it",
  )
}
