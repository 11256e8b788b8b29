import type pg from 'pg'
import { literalOf, literals, type Parameter, parameter } from './literals.ts'
import { releaseClient, takeClient } from './pool.ts'

export interface StatementsOptions {
  readonly pool: pg.Pool
  /** The connections for batches that may take longer than usual. */
  readonly patient: pg.Pool
  /** The quoted name of the schema. */
  readonly schema: string
  readonly channel: string
  readonly timeoutMs: number
  /** `false` if a connection keeps no prepared statement. */
  readonly prepares: boolean
}

/** A prepared statement that is sent among others. */
export interface PreparedBatch {
  readonly name: string
  readonly statement: (parameter: Parameter) => string
  readonly values: readonly unknown[]
  /** Makes the message of the statement, or of the EXECUTE that runs it. */
  readonly message: (statement: string) => string
}

/** Runs statements on the connections of one pool. None is repeated. */
export class Statements {
  readonly schema: string
  readonly channel: string
  readonly #options: StatementsOptions
  /** The statements that a connection has prepared. */
  readonly #prepared = new WeakMap<pg.PoolClient, Set<string>>()

  constructor(options: StatementsOptions) {
    this.#options = options
    this.schema = options.schema
    this.channel = options.channel
  }

  /** Runs a statement, or several in one message. */
  run(query: pg.QueryConfig): Promise<unknown> {
    return this.#options.pool.query(query)
  }

  /**
   * Runs one statement. Returns its rows.
   * @param name prepares the statement under this name, so that Postgres parses and plans it once a connection. Postgres
   * keeps the plan while the tables grow. A transaction pooler has no place for it
   */
  async query<Row>(text: string, values?: unknown[], name?: string): Promise<Row[]> {
    const isPrepared = name !== undefined && this.#options.prepares
    const { rows } = await this.#options.pool.query({ text, ...(values && { values }), ...(isPrepared && { name }) })
    return rows as Row[]
  }

  /**
   * Runs several statements without parameters in one message. Returns the rows of each.
   * @param timeoutMs a longer time than usual for all of them. They get a patient connection
   */
  async batch(text: string, timeoutMs = this.#options.timeoutMs): Promise<Record<string, unknown>[][]> {
    const isLong = timeoutMs > this.#options.timeoutMs
    const pool = isLong ? this.#options.patient : this.#options.pool
    // If the connection was lost silently, the statements would wait for the whole of a longer time. The pool returns
    // this connection again.
    if (isLong) await pool.query('SELECT 1')
    return rowsOfEach(await pool.query({ text, query_timeout: timeoutMs } as pg.QueryConfig))
  }

  /**
   * Runs statements in one message. Postgres parses and plans the prepared one once a connection. Returns the rows of
   * each.
   */
  async batchPrepared({ name, statement, values, message }: PreparedBatch): Promise<Record<string, unknown>[][]> {
    if (!this.#options.prepares) return this.batch(message(statement(literals(values))))
    const client = await takeClient(this.#options.pool)
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
}

export const rowsOfEach = (results: unknown): Record<string, unknown>[][] =>
  [results as pg.QueryResult | pg.QueryResult[]].flat().map(({ rows }) => rows)
