import type pg from 'pg'
import { withTables } from './dialect.ts'
import { lostTables } from './lost-tables.ts'
import { clientClass, makePool, type Pinned, releaseClient, takeClient } from './pool.ts'
import { inline, literal, type Message, type Purpose, type Query, type Rows } from './step.ts'
import { saysTableLost } from './storage-failure.ts'

/** Maximum connections by purpose. */
const maxConnections: Readonly<Record<Purpose, number>> = {
  accepting: 3,
  handling: 3,
  renewing: 1,
  reading: 2,
  patient: 2,
}

/** Time after which idle connections are closed (ms). Longer than the time between renewals or polls. */
const idleMs = 30_000

/** What changes the meaning of our statements, or their plans: made once, maybe while the tables are empty or have no statistics. */
const settings =
  '-c DateStyle=ISO -c array_nulls=on -c standard_conforming_strings=on -c extra_float_digits=1 ' +
  '-c default_transaction_isolation=read\\ committed -c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan'

export interface ConnectionsOptions {
  readonly config: pg.PoolConfig
  /** Quoted. */
  readonly schema: string
  readonly timeoutMs: number
  /** False if connections keep no prepared statements. */
  readonly prepares: boolean
}

/** The inbox's own connections. Handlers can't use them up. Sends each message once. */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #config: pg.PoolConfig
  readonly #pinned: Pinned = { config: {} }
  readonly #Client = clientClass(this.#pinned)
  readonly #pools: Readonly<Record<Purpose, pg.Pool>>
  /** Statements with the names of tables filled in. */
  readonly #texts = new Map<string, string>()
  /** Names of the statements each connection has prepared. */
  readonly #prepared = new WeakMap<pg.PoolClient, Set<string>>()

  /** @param given a pool to use for everything */
  constructor(options: ConnectionsOptions, given?: pg.Pool) {
    const { config, timeoutMs } = options
    this.#options = options
    const timeouts = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, idleTimeoutMillis: idleMs }
    this.#config = { ...config, ...timeouts, keepAlive: true }
    const findPool = (max: number) => given ?? makePool({ ...this.#config, Client: this.#Client, max, min: 0 })
    const pools = Object.entries(maxConnections).map(([on, max]) => [on, findPool(max)])
    this.#pools = Object.fromEntries(pools)
  }

  /** Pins the settings of later connections, and a timeout for statements that outlive their client: each has a session to itself. */
  pin(): void {
    const { options = process.env['PGOPTIONS'] ?? '' } = this.#config
    this.#pinned.config = { statement_timeout: this.#options.timeoutMs, options: `${options} ${settings}` }
  }

  /** Lends a connection that starts without pinned settings, and is closed afterwards. */
  async borrow<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await takeClient(this.#pools.patient)
    return use(client).finally(() => releaseClient(client, true))
  }

  /** Opens one more connection, to listen on. */
  async connect(): Promise<pg.Client> {
    const client = new this.#Client(this.#config)
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /**
   * Sends a message. Returns the rows of each statement.
   * @throws WebhookError `unavailable` if tables of the inbox are gone; otherwise what pg throws
   */
  async send(message: Message): Promise<readonly Rows[]> {
    return this.#send(message).catch((error) => {
      throw saysTableLost(error) ? lostTables(this.#options.schema, error) : error
    })
  }

  async #send({ on, parts, timeoutMs }: Message): Promise<readonly Rows[]> {
    const pool = this.#pools[on]
    const filled = parts.map((part) => this.#fill(part))
    if (timeoutMs !== undefined) return sendSlow(pool, filled, timeoutMs)
    const named = this.#options.prepares ? filled.filter(isNamed) : []
    if (named.length === 0) return send(pool, filled.map(inlined))
    return filled.length === 1 ? sendOne(pool, named[0] as Query) : this.#execute(pool, filled, named)
  }

  #fill(part: string | Query): string | Query {
    if (typeof part !== 'string') return { ...part, text: this.#fill(part.text) as string }
    const known = this.#texts.get(part)
    const text = known ?? withTables(part, this.#options.schema)
    if (known === undefined) this.#texts.set(part, text)
    return text
  }

  /** Each connection plans the prepared statements once. */
  async #execute(pool: pg.Pool, parts: Message['parts'], named: readonly Named[]): Promise<readonly Rows[]> {
    const client = await takeClient(pool)
    let problem: Error | undefined
    try {
      const names = this.#prepared.get(client) ?? new Set()
      this.#prepared.set(client, names)
      const missing = named.filter(({ name }) => !names.has(name))
      if (missing.length > 0)
        await client.query(missing.map(({ name, text }) => `PREPARE ${name}_ AS ${text}`).join(';'))
      for (const { name } of missing) names.add(name)
      return await send(client, parts.map(executed))
    } catch (error) {
      problem = error as Error
      throw error
    } finally {
      // After an error the connection may be in an aborted transaction.
      releaseClient(client, problem)
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()))
  }
}

type Named = Query & { readonly name: string }

const isNamed = (part: string | Query): part is Named => typeof part !== 'string' && part.name !== undefined

const inlined = (part: string | Query): string => (typeof part === 'string' ? part : inline(part))

// With `_`: the same statement may be prepared under its own name for the extended protocol.
const executed = (part: string | Query): string =>
  isNamed(part) ? `EXECUTE ${part.name}_ (${part.values.map(literal)})` : inlined(part)

async function send(
  on: pg.Pool | pg.PoolClient,
  texts: readonly string[],
  timeoutMs?: number,
): Promise<readonly Rows[]> {
  const timeout = timeoutMs !== undefined && { query_timeout: timeoutMs }
  return rowsOfEach(await on.query({ text: texts.join(';'), types, ...timeout } as pg.QueryConfig))
}

async function sendOne(pool: pg.Pool, { values, ...query }: Query): Promise<readonly Rows[]> {
  return rowsOfEach(await pool.query({ ...query, values: [...values], types } as pg.QueryConfig))
}

/** Finds a silently lost connection before the longer timeout. The pool then hands out the same one again. */
async function sendSlow(pool: pg.Pool, parts: Message['parts'], timeoutMs: number): Promise<readonly Rows[]> {
  await pool.query('SELECT 1')
  const [begin = '', ...rest] = parts.map(inlined)
  return send(pool, [begin, `SET LOCAL statement_timeout = ${timeoutMs}`, ...rest], timeoutMs)
}

/** Numbers and booleans; all else as text. The parsers of `pg` may be the user's. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (oid === 16) return (text: string) => text === 't'
    return oid === 23 || oid === 701 ? Number : (text: string) => text
  }) as pg.CustomTypesConfig['getTypeParser'],
}

const rowsOfEach = (results: unknown): readonly Rows[] =>
  [results as pg.QueryResult | pg.QueryResult[]].flat().map(({ rows }) => rows)
