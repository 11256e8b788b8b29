import type pg from 'pg'
import { clientClass, makePool, type Pinned, releaseClient, startUp, takeClient } from './pool.ts'
import { inline, literal, type PostgresStep, type Prepared, type Purpose, type Rows } from './step.ts'

/** Maximum connections by purpose. */
const maxConnections: Readonly<Record<Purpose, number>> = {
  accepting: 3,
  handling: 2,
  renewing: 1,
  reading: 2,
  patient: 2,
}

/** Time after which idle connections are closed (ms). Longer than the time between renewals or polls. */
const idleMs = 30_000

/** Prepared statements are planned once, maybe while the tables are empty or have no statistics. */
const planning = '-c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan'

export interface ConnectionsOptions {
  readonly config: pg.PoolConfig
  readonly timeoutMs: number
  /** False if connections keep no prepared statements. */
  readonly prepares: boolean
}

type Message = Pick<PostgresStep<unknown>, 'on' | 'parts' | 'timeoutMs'>

/** The inbox's own connections. Handlers can't use them up. Sends each message once. */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #config: pg.PoolConfig
  readonly #pinned: Pinned = { config: {} }
  readonly #Client = clientClass(this.#pinned)
  readonly #pools: Readonly<Record<Purpose, pg.Pool>>
  /** Names of the statements each connection has prepared. */
  readonly #prepared = new WeakMap<pg.PoolClient, Set<string>>()
  #isPinned = false

  /** @param given a pool to use for everything */
  constructor(options: ConnectionsOptions, given?: pg.Pool) {
    const { config, timeoutMs } = options
    this.#options = options
    this.#config = {
      ...config,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
    }
    const poolOf = (on: Purpose) =>
      given ?? makePool({ ...this.#config, Client: this.#Client, max: maxConnections[on], min: 0 })
    this.#pools = {
      accepting: poolOf('accepting'),
      handling: poolOf('handling'),
      renewing: poolOf('renewing'),
      reading: poolOf('reading'),
      patient: poolOf('patient'),
    }
  }

  /** Pins the settings of later connections: each has a session to itself. */
  pin(): void {
    const { options, ...others } = startUp(this.#config, this.#options.timeoutMs)
    this.#pinned.config = { ...others, options: `${options} ${planning}` }
    this.#isPinned = true
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

  /** Sends a message. Returns the rows of each statement. */
  async send(message: Message): Promise<readonly Rows[]> {
    const { on, parts, timeoutMs } = message
    const [first] = parts
    if (timeoutMs !== undefined) return this.#sendSlow(message, timeoutMs)
    if (!this.#options.prepares) return this.#query(this.#pools[on], parts.map(inlined).join(';'))
    if (parts.length === 1 && typeof first === 'object' && first.name !== '' && this.#isPinned)
      return this.#one(on, first)
    const named = parts.filter((part): part is Prepared => typeof part === 'object' && part.name !== '')
    if (named.length === 0) return this.#query(this.#pools[on], parts.map(inlined).join(';'))
    return this.#execute(on, parts, named)
  }

  async #one(on: Purpose, { name, text, values }: Prepared): Promise<readonly Rows[]> {
    const { rows } = await this.#pools[on].query({ name, text, values: [...values], types } as pg.QueryConfig)
    return [rows]
  }

  async #query(on: Pick<pg.Pool, 'query'> | pg.PoolClient, text: string): Promise<readonly Rows[]> {
    return rowsOfEach(await (on as pg.Pool).query({ text, types } as pg.QueryConfig))
  }

  /** Finds a silently lost connection before the longer timeout. The pool then hands out the same one again. */
  async #sendSlow({ on, parts }: Message, timeoutMs: number): Promise<readonly Rows[]> {
    const pool = this.#pools[on]
    await pool.query('SELECT 1')
    const [begin, ...rest] = parts.map(inlined)
    const text = [begin, `SET LOCAL statement_timeout = ${timeoutMs}`, ...rest].join(';')
    return rowsOfEach(await pool.query({ text, types, query_timeout: timeoutMs } as pg.QueryConfig))
  }

  /** Each connection plans the prepared statements once. */
  async #execute(on: Purpose, parts: Message['parts'], named: readonly Prepared[]): Promise<readonly Rows[]> {
    const client = await takeClient(this.#pools[on])
    let problem: Error | undefined
    try {
      const names = this.#prepared.get(client) ?? new Set()
      this.#prepared.set(client, names)
      const missing = named.filter(({ name }) => !names.has(name))
      if (missing.length > 0)
        await client.query(missing.map(({ name, text }) => `PREPARE ${name}_ AS ${text}`).join(';'))
      for (const { name } of missing) names.add(name)
      return await this.#query(client, parts.map(executed).join(';'))
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

const inlined = (part: string | Prepared): string => (typeof part === 'string' ? part : inline(part))

// With `_`: the same statement may be prepared under its own name for the extended protocol.
const executed = (part: string | Prepared): string =>
  typeof part === 'object' && part.name !== '' ? `EXECUTE ${part.name}_ (${part.values.map(literal)})` : inlined(part)

/** Numbers and booleans; all else as text. The parsers of `pg` may be the user's. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (oid === 16) return (text: string) => text === 't'
    return oid === 23 ? Number : (text: string) => text
  }) as pg.CustomTypesConfig['getTypeParser'],
}

export const rowsOfEach = (results: unknown): readonly Rows[] =>
  [results as pg.QueryResult | pg.QueryResult[]].flat().map(({ rows }) => rows)
