import type pg from 'pg'
import { literalOf, literals, type Parameter, parameter } from './literals.ts'
import { releaseClient, takeClient } from './pool.ts'

export interface StatementsOptions {
  readonly pool: pg.Pool
  /** Connections for slow batches. */
  readonly patient: pg.Pool
  readonly schema: string
  readonly channel: string
  readonly timeoutMs: number
  /** False if connections keep no prepared statements. */
  readonly prepares: boolean
}

/** A message of several statements, one of them prepared. */
export interface PreparedBatch {
  readonly name: string
  readonly statement: (parameter: Parameter) => string
  readonly values: readonly unknown[]
  /** Builds the message around the statement, or around the EXECUTE that runs it. */
  readonly message: (statement: string) => string
}

/** Runs statements on the connections of one pool. Repeats none. */
export class Statements {
  readonly schema: string
  readonly channel: string
  readonly #options: StatementsOptions
  /** Names of the statements each connection has prepared. */
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

  /** Runs one statement, and returns its rows. `name` prepares it: each connection plans it once, for good. */
  async query<Row>(text: string, values?: unknown[], name?: string): Promise<Row[]> {
    const isPrepared = name !== undefined && this.#options.prepares
    const { rows } = await this.#options.pool.query({ text, ...(values && { values }), ...(isPrepared && { name }) })
    return rows as Row[]
  }

  /** Runs statements without parameters in one message. A timeout longer than usual gets a patient connection. */
  async batch(text: string, timeoutMs = this.#options.timeoutMs): Promise<Record<string, unknown>[][]> {
    const isLong = timeoutMs > this.#options.timeoutMs
    const pool = isLong ? this.#options.patient : this.#options.pool
    // Finds a silently lost connection before the longer timeout. The pool then hands out the same one again.
    if (isLong) await pool.query('SELECT 1')
    return rowsOfEach(await pool.query({ text, query_timeout: timeoutMs } as pg.QueryConfig))
  }

  /** Runs statements in one message. Each connection plans the prepared one once. Returns the rows of each. */
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
      // After an error the connection may be in an aborted transaction.
      releaseClient(client, problem)
    }
  }
}

export const rowsOfEach = (results: unknown): Record<string, unknown>[][] =>
  [results as pg.QueryResult | pg.QueryResult[]].flat().map(({ rows }) => rows)
