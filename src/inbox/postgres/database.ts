import pg from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import type { InboxHost } from '../inbox.ts'
import { clientWithTimeout, makePool, releaseClient, take } from './pool.ts'
import { prepareSchema } from './prepare-schema.ts'
import { quoted } from './schema.ts'

/** The connections for accepting, for claims and for records, so that none of them waits for another. */
const connections = 3

/** The pauses between two attempts to reach Postgres, in ms: the first, and the longest. */
const leastPauseMs = 25
const longestPauseMs = 1_000

export interface DatabaseOptions {
  readonly config: pg.PoolConfig
  readonly schema: string
  readonly timeoutMs: number
  readonly listen: boolean
  readonly host: Pick<InboxHost, 'logger' | 'measured'>
}

/** The tables of an inbox. */
export interface Tables {
  /** The quoted name of the schema. */
  readonly schema: string
  /**
   * The channel on which the processes of the schema notify each other. Its name is that of the schema, without quotes.
   */
  readonly channel: string
  /**
   * Runs a statement in which `$event` and so on are the names of tables, and returns its rows.
   * @throws WebhookError `unavailable`
   */
  ask<Row>(statement: string, values?: unknown[]): Promise<Row[]>
  /**
   * Runs several statements without parameters in one message. Returns the rows of each.
   * @throws WebhookError `unavailable`
   */
  askAll(statements: string): Promise<Record<string, unknown>[][]>
}

/** Returns a parameter of a statement, from 1 on, or its value as SQL. */
export type Parameter = (number: number) => string

/** The parameters of a statement that is sent with its values. */
export const parameter: Parameter = (number) => `$${number}`

/** A prepared statement that is sent among others. */
export interface PreparedBatch {
  readonly name: string
  readonly statement: (parameter: Parameter) => string
  readonly values: readonly unknown[]
  /** Makes the message of the statement, or of the EXECUTE that runs it. */
  readonly message: (statement: string) => string
}

/** Puts the names of tables in a statement, but not in its quoted names: a schema's may have a `$`. */
const withTables = (statement: string, schema: string): string =>
  statement.replaceAll(/"[^"]*"|\$([a-z]\w*)/g, (found, table) => (table === undefined ? found : `${schema}.${table}`))

/** The tables, over a pool. A statement is not repeated: the caller waits for its result, and can repeat it. */
export function tablesOf(pool: pg.Pool, name: string): Tables {
  const schema = quoted(name)
  const query = (text: string, values?: unknown[]) =>
    pool.query(text, values).catch((error) => Promise.reject(unreachable(error)))
  return {
    schema,
    channel: name,
    ask: (statement, values) => query(withTables(statement, schema), values).then(({ rows }) => rows),
    askAll: (statements) => query(statements).then(rowsOfEach),
  }
}

/** The values of the parameters as SQL, for a message with several statements: it has no parameters. */
export function literals(values: readonly unknown[]): Parameter {
  const texts = values.map(literalOf)
  return (number) => texts[number - 1] as string
}

export function literalOf(value: unknown): string {
  if (Array.isArray(value)) return `ARRAY[${value.map(literalOf)}]`
  return value === null || value === undefined ? 'NULL' : pg.Client.prototype.escapeLiteral(`${value}`)
}

const rowsOfEach = (results: unknown): Record<string, unknown>[][] =>
  [results as pg.QueryResult | pg.QueryResult[]].flat().map(({ rows }) => rows)

/** The inbox's own connections to Postgres. Handlers cannot use them up. */
export class Database implements Tables {
  readonly schema: string
  readonly channel: string
  readonly #options: DatabaseOptions
  readonly #pool: pg.Pool
  readonly #config: pg.PoolConfig
  readonly #Client: typeof pg.Client = pg.Client
  /** The statements that a connection has prepared. */
  readonly #prepared = new WeakMap<pg.PoolClient, Set<string>>()
  #opening: Promise<void> | undefined
  #problem: unknown
  #isOpen = false
  #isClosed = false

  constructor(options: DatabaseOptions) {
    const { config, schema, timeoutMs, listen } = options
    this.#options = options
    this.schema = quoted(schema)
    this.channel = schema
    this.#config = { ...config, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, keepAlive: true }
    // PgBouncer in transaction mode takes no settings of a session.
    if (listen) this.#Client = clientWithTimeout(timeoutMs)
    this.#pool = makePool({ ...this.#config, Client: this.#Client, max: connections, min: 0 })
  }

  /** `false` behind a PgBouncer in transaction mode: it has no place for prepared statements. */
  get prepares(): boolean {
    return this.#options.listen
  }

  /** Opens the inbox's tables, and repeats that until it succeeds. It calls `opened` afterwards. */
  start(opened: () => Promise<void>): void {
    this.#opening = this.#open(opened)
    this.#opening.catch(() => {})
  }

  /**
   * Resolves once the tables are open.
   * @throws WebhookError `unavailable` when the first attempt fails
   */
  async ready(): Promise<void> {
    await this.#opening
  }

  /** @throws WebhookError `unavailable` until the tables are open */
  checkReady(): void {
    if (!this.#isOpen) throw unreachable(this.#problem)
  }

  async #open(opened: () => Promise<void>): Promise<void> {
    try {
      const client = await take(this.#pool)
      await prepareSchema(client, this.#options.schema).finally(() => releaseClient(client, true))
      await opened()
      this.#isOpen = true
    } catch (error) {
      const problem = unreachable(error)
      if (this.#isClosed) throw problem
      if (`${this.#problem}` !== `${problem}`)
        this.#options.host.logger.error({ err: problem }, 'the inbox cannot be opened yet; deliveries are answered 503')
      this.#problem = problem
      setTimeout(() => !this.#isClosed && this.start(opened), longestPauseMs).unref()
      throw problem
    }
  }

  /** Runs a statement, and repeats it while Postgres is unreachable, for up to `timeoutMs`. */
  ask<Row>(statement: string, values?: unknown[]): Promise<Row[]> {
    const text = withTables(statement, this.schema)
    return this.reach(() => this.query<Row>(text, values))
  }

  /** Runs several statements in one message, and repeats them while Postgres is unreachable, for up to `timeoutMs`. */
  askAll(statements: string): Promise<Record<string, unknown>[][]> {
    return this.reach(() => this.batch(statements))
  }

  /**
   * Runs one statement, which is not repeated. Returns its rows.
   * @param name prepares the statement under this name, so that Postgres parses and plans it once a connection. Postgres
   * keeps the plan while the tables grow. A PgBouncer in transaction mode has no place for it
   */
  async query<Row>(text: string, values?: unknown[], name?: string): Promise<Row[]> {
    const isPrepared = name !== undefined && this.prepares
    const { rows } = await this.#pool.query({ text, ...(values && { values }), ...(isPrepared && { name }) })
    return rows as Row[]
  }

  /**
   * Runs several statements without parameters in one message. Returns the rows of each.
   * @param timeoutMs a longer time than usual for all of them
   */
  async batch(text: string, timeoutMs = this.#options.timeoutMs): Promise<Record<string, unknown>[][]> {
    // If the connection was lost silently, the statements would wait for the whole of a longer time. The pool returns
    // this connection again.
    if (timeoutMs > this.#options.timeoutMs) await this.query('SELECT 1')
    const query = { text, query_timeout: timeoutMs } as pg.QueryConfig
    return rowsOfEach(await this.#pool.query(query))
  }

  /**
   * Runs statements in one message. Postgres parses and plans the prepared one once a connection. Returns the rows of
   * each.
   */
  async batchPrepared({ name, statement, values, message }: PreparedBatch): Promise<Record<string, unknown>[][]> {
    if (!this.prepares) return this.batch(message(statement(literals(values))))
    const client = await take(this.#pool)
    let problem: Error | undefined
    try {
      const names = this.#prepared.get(client) ?? new Set()
      if (!names.has(name)) await client.query(`PREPARE ${name} AS ${statement(parameter)}`)
      this.#prepared.set(client, names.add(name))
      return rowsOfEach(await client.query(message(`EXECUTE ${name} (${values.map(literalOf)})`)))
    } catch (error) {
      problem = error as Error
      throw error
    } finally {
      // After an error the connection may be in a transaction that has failed.
      releaseClient(client, problem)
    }
  }

  /**
   * Runs a step, and repeats it while Postgres is unreachable, for up to `timeoutMs`.
   * @throws WebhookError `unavailable`
   */
  async reach<T>(step: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#options.timeoutMs
    for (let pauseMs = leastPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        this.checkReady()
        return await step()
      } catch (error) {
        if (this.#isClosed || !isUnreachable(error) || performance.now() + pauseMs > deadline) throw unreachable(error)
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  /** Runs a step, and reports its duration if durations are measured. */
  measure<T>(step: string, run: () => Promise<T>): Promise<T> {
    return measure(this.#options.host.measured, step, run)
  }

  /** Connects once more, to listen. */
  async connect(): Promise<pg.Client> {
    const client = new this.#Client(this.#config)
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pool.end()
  }
}

/** Wraps an error of Postgres or of the network. */
export const unreachable = (cause: unknown): WebhookError =>
  cause instanceof WebhookError
    ? cause
    : new WebhookError('unavailable', 'Postgres gave no answer, or an error', { cause })

/**
 * Returns `true` if an error means that Postgres is unreachable, starting, failing over or too busy, so that the same
 * statement can succeed soon. The codes are those of "PostgreSQL Error Codes"; an error without a code comes from the
 * network.
 */
export function isUnreachable(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  if (error instanceof WebhookError) return code === 'unavailable'
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return true
  return /^(08|40|53|57|25006|55P03)/.test(code)
}
