import type pg from 'pg'
import { WebhookError } from '../../errors.ts'
import { consoleLogger } from '../../internal/logger.ts'
import { processName } from '../../internal/process-name.ts'
import { outage } from '../../internal/storage/outage.ts'
import { unref } from '../../internal/timers.ts'
import type { Acceptance, InboxHost } from '../inbox.ts'
import type { Database, DatabaseListener, NewEvent, Statement, Step, Value } from '../sql/database.ts'
import type { Signal } from '../sql/signal.ts'
import type { Route } from './connection.ts'
import { Connections } from './connections.ts'
import { dialect, withTables } from './dialect.ts'
import { hashKey, hashMedia } from './keys.ts'
import { Notifications } from './notifications.ts'
import { makePool, placeOf } from './pool.ts'
import { findPooler, isRefusedByPooler, poolerProblem } from './pooler.ts'
import { prepareSchema } from './prepare-schema.ts'
import { quoted } from './schema.ts'
import { offer, useIndexes } from './statements.ts'
import { type PostgresStep, query, transaction } from './step.ts'
import { PostgresSteps } from './steps.ts'
import { classifyFailure, isUndone } from './storage-failure.ts'
import { transactions } from './transactions.ts'

/** First and longest delay between attempts to reach Postgres (ms). */
const minDelayMs = 25
const maxDelayMs = 1_000

export interface PostgresOptions extends Route {
  readonly schema: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
  readonly timeoutMs: number
  readonly listen: boolean
  readonly handles: boolean
}

/** A Postgres database shared by any number of processes. */
export class PostgresDatabase implements Database {
  readonly steps: PostgresSteps
  readonly dialect = dialect
  readonly process = processName
  readonly hashKey = hashKey
  readonly hashMedia = hashMedia
  readonly transaction: Database['transaction']
  readonly #host: Pick<InboxHost, 'logger'>
  readonly #options: PostgresOptions
  readonly #connections: Connections
  readonly #notifications: Notifications
  readonly #ownPool: pg.Pool | undefined
  readonly #place: string | undefined
  #opening: Promise<void> | undefined
  #problem: unknown
  /** `prepared`: the tables are there, and the inbox is starting. */
  #state: 'unopened' | 'prepared' | 'open' | 'closed' = 'unopened'

  constructor(
    host: Pick<InboxHost, 'logger' | 'measured' | 'order'>,
    options: PostgresOptions,
    connections?: Connections,
  ) {
    const { given, config, schema, concurrency, leaseMs, ttlMs, timeoutMs, listen, handles } = options
    this.#host = host
    this.#options = options
    this.#place = placeOf(given?.options ?? config)
    this.#connections = connections ?? new Connections({ config, schema: quoted(schema), timeoutMs, prepares: listen })
    const isStrict = host.order === 'strict'
    this.steps = new PostgresSteps({ isStrict, leaseMs, ttlMs })
    const processes = () => this.steps.processes
    this.#notifications = new Notifications({ connections: this.#connections, schema, processes })
    if (handles && given === undefined) this.#ownPool = makePool({ ...config, max: concurrency })
    const pool = given ?? (this.#ownPool as pg.Pool)
    const { measured } = host
    this.transaction = transactions({ pool, schema: quoted(schema), leaseMs, measured })
  }

  /** Opens the tables for inspection, over a pool that stays open. */
  static inspected(pool: pg.Pool, schema: string, timeoutMs: number): PostgresDatabase {
    const limits = { concurrency: 1, leaseMs: 0, ttlMs: 0, timeoutMs, listen: false, handles: false }
    const connections = new Connections({ config: {}, schema: quoted(schema), timeoutMs, prepares: false }, pool)
    const database = new PostgresDatabase(
      { logger: consoleLogger },
      { given: pool, config: {}, schema, ...limits },
      connections,
    )
    database.#state = 'open'
    return database
  }

  open(opened: () => Promise<void>): void {
    this.#opening = this.#open(opened)
    this.#opening.catch(() => {})
  }

  async ready(): Promise<void> {
    await this.#opening
  }

  async #open(opened: () => Promise<void>): Promise<void> {
    try {
      await this.#connections.borrow((client) => this.#prepare(client))
      if (this.#state === 'unopened') this.#state = 'prepared'
      await opened()
      if (this.#state === 'prepared') this.#state = 'open'
    } catch (error) {
      const problem = unreachable(error, this.#place)
      if (this.#state === 'closed') throw problem
      if (`${this.#problem}` !== `${problem}`)
        this.#host.logger.error({ err: problem }, 'the inbox cannot be opened yet; deliveries are answered 503')
      this.#problem = problem
      unref(setTimeout(() => this.#state !== 'closed' && this.open(opened), maxDelayMs))
      throw problem
    }
  }

  /** Detects poolers, pins the settings of later connections unless one would share them, and makes the tables. */
  async #prepare(client: pg.PoolClient): Promise<void> {
    if (this.#options.listen) {
      const other = await this.#connections.connect()
      const pooler = await findPooler(client, other).finally(() => other.end().catch(() => {}))
      if (pooler === 'transaction') throw new WebhookError('unavailable', poolerProblem)
      if (pooler === 'none') this.#connections.pin()
    }
    await prepareSchema(client, this.#options.schema)
  }

  async run<Result>(step: Step<Result>): Promise<Result> {
    const { on, read, isRepeatable, timedOut, ...message } = step as PostgresStep<Result>
    const send = async () => read(await this.#connections.send({ on, ...message }))
    if (on === 'reading') return this.#reach(send, isRepeatable ? undefined : isUndone)
    this.#checkReady(on === 'accepting' ? 'open' : 'prepared')
    return send().catch((error) => {
      if (classifyFailure(error) === 'timeout') timedOut?.()
      throw error
    })
  }

  /** Throws `unavailable` until the tables are open. */
  #checkReady(state: 'prepared' | 'open'): void {
    if (this.#state !== 'open' && this.#state !== state && this.#state !== 'closed')
      throw unreachable(this.#problem, this.#place)
  }

  /**
   * Retries while Postgres is unreachable, up to `timeoutMs`, then throws `unavailable`.
   * @param canRepeat false if a second copy might find the changes of the first one, whose answer was lost
   */
  async #reach<T>(step: () => Promise<T>, canRepeat = (_error: unknown) => true): Promise<T> {
    const deadline = performance.now() + this.#options.timeoutMs
    for (let delayMs = minDelayMs; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
      try {
        this.#checkReady('prepared')
        return await step()
      } catch (error) {
        const isOver = this.#state === 'closed' || performance.now() + delayMs > deadline
        if (isOver || classifyFailure(error) === undefined || !canRepeat(error)) throw unreachable(error, this.#place)
      }
      await new Promise((resolve) => setTimeout(resolve, delayMs))
    }
  }

  async read<Row>(sql: string, values: readonly Value[] = []): Promise<Row[]> {
    const parts = transaction(useIndexes, query(sql, ...values))
    const results = await this.#reach(() => this.#connections.send({ on: 'reading', parts }))
    return results.at(-2) as unknown as Row[]
  }

  async change(statements: readonly Statement[]): Promise<readonly number[]> {
    const parts = transaction(...statements.map(({ sql, values = [] }) => query(`${sql} RETURNING 1`, ...values)))
    const results = await this.#reach(() => this.#connections.send({ on: 'reading', parts }), isUndone)
    return results.slice(1, statements.length + 1).map((rows) => rows.length)
  }

  async offer(client: object, { hash, media, event, head, owed }: Omit<NewEvent, 'changes'>): Promise<Acceptance> {
    const { query, totalCount } = client as Partial<pg.PoolClient & pg.Pool>
    if (typeof query !== 'function' || totalCount !== undefined)
      throw new WebhookError(
        'invalid_option',
        'accept: client must be a client of pg that is in your transaction, not a pool',
      )
    // Not awaited: over PGlite, opening waits for the transaction.
    this.#checkReady('open')
    const { schema } = this.#options
    const values = [hash, media, event, head, owed ?? '[]', schema]
    const { rows } = await (client as pg.PoolClient).query(withTables(offer, quoted(schema)), values)
    return rows.length === 0 ? 'duplicate' : 'accepted'
  }

  failure = classifyFailure

  listen(listener: DatabaseListener): void {
    if (this.#options.listen) this.#notifications.listen(listener)
  }

  get isListening(): boolean {
    return this.#notifications.isListening
  }

  notify(signal: Signal): void {
    this.#notifications.notify(signal)
  }

  /** Stops telling other processes. Resolves after the last notification is sent. */
  stopNotifying(): Promise<void> {
    return this.#notifications.stop()
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    await this.stopNotifying()
    await Promise.all([this.#connections.close(), this.#ownPool?.end()])
  }
}

/** Wraps an error of Postgres or the network. @param place where the server is, for the message */
export function unreachable(cause: unknown, place?: string | undefined): WebhookError {
  if (cause instanceof WebhookError) return cause
  if (isRefusedByPooler(cause)) return new WebhookError('unavailable', poolerProblem, { cause })
  return outage(place === undefined ? 'Postgres' : `Postgres at ${place}`, cause)
}
