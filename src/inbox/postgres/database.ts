import type pg from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import type { InboxHost } from '../inbox.ts'
import { clientClass, makePool, type Pinned, releaseClient, startUp, takeClient } from './pool.ts'
import { findPooler, isRefusedByPooler, poolerProblem } from './pooler.ts'
import { prepareSchema } from './prepare-schema.ts'
import { quoted } from './schema.ts'
import { type PreparedBatch, Statements } from './statements.ts'
import { type Tables, tablesOver } from './tables.ts'

/** Maximum connections by purpose. A slow read or a wait for a lock must not hold up the others. */
const connections = { accepting: 3, handling: 2, renewing: 1, reading: 2, patient: 2 }

/** Time after which idle connections are closed (ms). Longer than the time between renewals or polls. */
const idleMs = 30_000

/** First and longest delay between attempts to reach Postgres (ms). */
const minDelayMs = 25
const maxDelayMs = 1_000

export interface DatabaseOptions {
  readonly config: pg.PoolConfig
  readonly schema: string
  readonly timeoutMs: number
  readonly listen: boolean
  readonly host: Pick<InboxHost, 'logger' | 'measured'>
}

/** The inbox's own connections. Handlers can't use them up. */
export class Database {
  readonly schema: string
  readonly channel: string
  readonly #options: DatabaseOptions
  readonly #config: pg.PoolConfig
  readonly #pools: Readonly<Record<keyof typeof connections, pg.Pool>>
  readonly #pinned: Pinned = { config: {} }
  readonly #Client = clientClass(this.#pinned)
  /** For deliveries. */
  readonly accepting: Statements
  /** For claims and records. */
  readonly handling: Statements
  /** For the lease. */
  readonly renewing: Statements
  /** For operators. */
  readonly reading: Statements
  /** For upkeep. */
  readonly patient: Statements
  readonly tables: Tables
  #opening: Promise<void> | undefined
  #problem: unknown
  #isOpen = false
  #isClosed = false

  constructor(options: DatabaseOptions) {
    const { config, schema, timeoutMs, listen } = options
    this.#options = options
    this.schema = quoted(schema)
    this.channel = schema
    this.#config = {
      ...config,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
    }
    const poolOf = (max: number) => makePool({ ...this.#config, Client: this.#Client, max, min: 0 })
    this.#pools = {
      accepting: poolOf(connections.accepting),
      handling: poolOf(connections.handling),
      renewing: poolOf(connections.renewing),
      reading: poolOf(connections.reading),
      patient: poolOf(connections.patient),
    }
    const statements = (pool: pg.Pool) =>
      new Statements({
        pool,
        patient: this.#pools.patient,
        schema: this.schema,
        channel: schema,
        timeoutMs,
        prepares: listen,
      })
    this.accepting = statements(this.#pools.accepting)
    this.handling = statements(this.#pools.handling)
    this.renewing = statements(this.#pools.renewing)
    this.reading = statements(this.#pools.reading)
    this.patient = statements(this.#pools.patient)
    this.tables = this.tablesOn(this.reading)
  }

  /** False behind a transaction pooler, which can't keep prepared statements. */
  get prepares(): boolean {
    return this.#options.listen
  }

  /** Opens the inbox's tables, then calls `opened`. Retries until both succeed. */
  start(opened: () => Promise<void>): void {
    this.#opening = this.#open(opened)
    this.#opening.catch(() => {})
  }

  /** Resolves once the tables are open. Rejects with `unavailable` if the first attempt fails. */
  async ready(): Promise<void> {
    await this.#opening
  }

  /** Throws `unavailable` until the tables are open. */
  checkReady(): void {
    if (!this.#isOpen) throw unreachable(this.#problem)
  }

  async #open(opened: () => Promise<void>): Promise<void> {
    try {
      await this.#prepare()
      await opened()
      this.#isOpen = true
    } catch (error) {
      const problem = unreachable(error)
      if (this.#isClosed) throw problem
      if (`${this.#problem}` !== `${problem}`)
        this.#options.host.logger.error({ err: problem }, 'the inbox cannot be opened yet; deliveries are answered 503')
      this.#problem = problem
      setTimeout(() => !this.#isClosed && this.start(opened), maxDelayMs).unref()
      throw problem
    }
  }

  /** Detects poolers, then makes the tables. These connections start without pinned settings. */
  async #prepare(): Promise<void> {
    const client = await takeClient(this.#pools.patient)
    try {
      if (this.#options.listen) await this.#checkRoute(client)
      await prepareSchema(client, this.#options.schema)
    } finally {
      releaseClient(client, true)
    }
  }

  /** Pins the settings of later connections, unless a pooler would share them. Throws behind a transaction pooler. */
  async #checkRoute(client: pg.PoolClient): Promise<void> {
    const other = await this.connect()
    const pooler = await findPooler(client, other).finally(() => other.end().catch(() => {}))
    if (pooler === 'transaction') throw new WebhookError('unavailable', poolerProblem)
    if (pooler === 'none') this.#pinned.config = startUp(this.#config, this.#options.timeoutMs)
  }

  /** The tables, usable before the inbox is open. */
  get unopened(): Tables {
    return tablesOver(this.channel, (query) => this.renewing.run(query))
  }

  /** The tables over some connections. Retries while Postgres is unreachable, for up to `timeoutMs`. */
  tablesOn(statements: Statements): Tables {
    return tablesOver(this.channel, (query) => this.reach(() => statements.run(query)))
  }

  query<Row>(text: string, values?: unknown[], name?: string): Promise<Row[]> {
    return this.handling.query(text, values, name)
  }

  batch(text: string, timeoutMs?: number): Promise<Record<string, unknown>[][]> {
    return this.handling.batch(text, timeoutMs)
  }

  batchPrepared(batch: PreparedBatch): Promise<Record<string, unknown>[][]> {
    return this.handling.batchPrepared(batch)
  }

  /** Runs a step. Retries while Postgres is unreachable, up to `timeoutMs`, then throws `unavailable`. */
  async reach<T>(step: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#options.timeoutMs
    for (let delayMs = minDelayMs; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
      try {
        this.checkReady()
        return await step()
      } catch (error) {
        if (this.#isClosed || !isUnreachable(error) || performance.now() + delayMs > deadline) throw unreachable(error)
      }
      await new Promise((resolve) => setTimeout(resolve, delayMs))
    }
  }

  /** Runs a step, and reports its duration if the host measures. */
  measure<T>(step: string, run: () => Promise<T>): Promise<T> {
    return measure(this.#options.host.measured, step, run)
  }

  /** Opens one more connection, to listen on. */
  async connect(): Promise<pg.Client> {
    const client = new this.#Client(this.#config)
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()))
  }
}

/** Wraps an error of Postgres or the network. */
export const unreachable = (cause: unknown): WebhookError =>
  cause instanceof WebhookError
    ? cause
    : new WebhookError(
        'unavailable',
        isRefusedByPooler(cause) ? poolerProblem : 'Postgres gave no answer, or an error',
        {
          cause,
        },
      )

/**
 * Returns true if the same statement may soon succeed: Postgres is unreachable, starting, failing over or too busy. For
 * the codes see "PostgreSQL Error Codes". An error without one comes from the network.
 */
export function isUnreachable(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  if (error instanceof WebhookError) return code === 'unavailable'
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return true
  return /^(08|40|53|57|25006|55P03)/.test(code)
}
