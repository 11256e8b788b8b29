import type { Pool, PoolClient } from 'pg'
import { within } from '../../internal/timers.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import { invalid, NestedTransactions } from '../sql/nested-transactions.ts'
import { releaseClient, takeClient } from './pool.ts'
import { isRefused, isStorageFailure, sqlState } from './storage-failure.ts'

/** Maximum wait for the answer to COMMIT or ROLLBACK (ms). */
const answerMs = 10_000

/** Maximum wait for queries that a handler sent and did not await (ms). */
const openQueriesMs = 1_000

/** Takes a client from the pool. If the signal aborts first, the client goes back when it arrives. */
export function connect(pool: Pool, signal: AbortSignal): Promise<PoolClient> {
  const connected = takeClient(pool)
  return unlessAborted(signal, connected).catch((error) => {
    connected.then((client) => releaseClient(client)).catch(() => {})
    throw error
  })
}

/** A pool's client during a transaction. An abort closes the connection, so that nothing is committed. */
export class TransactionClient {
  readonly pooled: PoolClient
  /** What the handler gets. */
  readonly lent: PoolClient
  readonly #signal: AbortSignal
  readonly #queries = new OpenQueries()
  readonly #nested = new NestedTransactions('postgres')
  readonly #abort = () => this.#release(this.#signal.reason)
  readonly #onError = (error: Error) => {
    this.#brokenBy ??= error
  }
  #brokenBy: (Error & { code?: string }) | undefined
  #isLent = true
  #isReleased = false

  constructor(pooled: PoolClient, signal: AbortSignal) {
    this.pooled = pooled
    this.lent = lend(pooled, (...args) => this.#send(args))
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
    pooled.on('error', this.#onError)
  }

  /** True if the connection broke, except by a timeout of the transaction (idle or total). */
  get isLost(): boolean {
    return this.#brokenBy !== undefined && !/^25P0[34]$/.test(`${this.#brokenBy.code}`)
  }

  /** True if the error only says that an earlier statement failed, and that was the storage's fault. */
  isAborted(error: unknown): boolean {
    return this.#queries.hasStorageFailed && isRefused(error)
  }

  /**
   * Resolves once all of the handler's queries have ended. It can send no more.
   * @throws WebhookError `invalid_transaction` if one takes too long: a COMMIT would wait behind it. Or if a nested
   * transaction is still open
   */
  async idle(): Promise<void> {
    this.#isLent = false
    if (await this.#queries.end()) return this.#nested.checkEnded()
    const error = invalid('a query was not awaited, or a cursor not closed. Do both before the function returns')
    this.#release(error)
    throw error
  }

  async commit(text: string): Promise<void> {
    // Too late to abort: only the database knows whether it has committed.
    this.#signal.removeEventListener('abort', this.#abort)
    this.#isLent = false
    try {
      await this.pooled.query({ text, query_timeout: answerMs } as { text: string })
    } catch (error) {
      // Postgres did not answer, and would not answer a rollback either.
      if (sqlState(error) === undefined) {
        this.#onError(error as Error)
        this.#release(error as Error)
      }
      throw error
    }
    this.#release()
  }

  /** @param failure error of the storage. Closes the connection, since the next one may work */
  async rollBack(failure?: Error): Promise<void> {
    this.#isLent = false
    if (this.#isReleased) return
    if (failure !== undefined || !(await this.#queries.end()))
      this.#release(failure ?? invalid('a query is still running'))
    if (this.#isReleased) return
    await this.pooled.query({ text: 'ROLLBACK', query_timeout: answerMs } as { text: string }).then(
      () => this.#release(),
      (error) => this.#release(error),
    )
  }

  /**
   * Sends a query of the handler. Rejects late ones, since another handler may have the client by then. pg runs earlier
   * ones in order, before COMMIT or ROLLBACK.
   */
  #send(args: unknown[]): unknown {
    try {
      if (!this.#isLent)
        throw invalid('a query was sent after the transaction had ended. Await every query in the function')
      nestQuery(args, this.#nested)
    } catch (error) {
      return refuse(args, error)
    }
    return this.#queries.send(this.pooled, args)
  }

  #release(error?: Error): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#isLent = false
    this.#signal.removeEventListener('abort', this.#abort)
    this.pooled.off('error', this.#onError)
    releaseClient(this.pooled, error)
  }
}

/** A query as an object. pg drives one with `submit` itself, such as a cursor, and calls the other method at its end. */
interface QueryObject {
  readonly name?: string
  text?: string
  readonly submit?: unknown
  handleReadyForQuery?: (...args: unknown[]) => unknown
}

const isCallback = (arg: unknown): arg is (...args: unknown[]) => unknown => typeof arg === 'function'

/** Replaces the query's SQL by its nested form. */
function nestQuery(args: unknown[], nested: NestedTransactions): void {
  const [query] = args as [QueryObject | string | undefined]
  const sql = typeof query === 'string' ? query : query?.text
  if (typeof sql !== 'string') return
  const text = nested.nest(sql)
  if (text === sql) return
  if (typeof query !== 'object') args[0] = text
  else if (isCallback(query.submit)) query.text = text
  // Its name would stand for another text.
  else args[0] = { ...query, text, name: undefined }
}

/** Rejects a query as pg does. */
function refuse(args: readonly unknown[], error: unknown): unknown {
  const [query] = args as [QueryObject | undefined]
  if (isCallback(query?.submit)) throw error
  const callback = args.find(isCallback)
  if (callback === undefined) return Promise.reject(error)
  process.nextTick(callback, error)
  return undefined
}

/** A handler's queries that have not ended. */
class OpenQueries {
  hasStorageFailed = false
  #count = 0
  #onIdle: (() => void) | undefined

  /** Sends a query, and counts it until its end. */
  send(pooled: PoolClient, args: unknown[]): unknown {
    const [query] = args as [QueryObject | undefined]
    const callback = args.findIndex(isCallback)
    const isSubmittable = isCallback(query?.submit)
    const ended = this.#begin()
    if (isSubmittable) query.handleReadyForQuery = andThen(query.handleReadyForQuery, () => ended())
    else if (callback >= 0) args[callback] = andThen(args[callback] as () => void, ended)
    try {
      const result = Reflect.apply(pooled.query, pooled, args)
      if (!isSubmittable && callback < 0) (result as Promise<unknown>).then(() => ended(), ended)
      return result
    } catch (error) {
      ended()
      throw error
    }
  }

  #begin(): (error?: unknown) => void {
    this.#count++
    let isOpen = true
    return (error) => {
      this.hasStorageFailed ||= isStorageFailure(error)
      if (isOpen) this.#count--
      isOpen = false
      if (this.#count === 0) this.#onIdle?.()
    }
  }

  /** Resolves with `true` once all have ended, with `false` if they take too long. */
  async end(): Promise<boolean> {
    if (this.#count === 0) return true
    const idle = new Promise<boolean>((resolve) => {
      this.#onIdle = () => resolve(true)
    })
    return within(openQueriesMs, idle, () => false)
  }
}

const andThen = (call: ((...args: unknown[]) => unknown) | undefined, then: (error?: unknown) => void) =>
  function (this: unknown, ...args: unknown[]) {
    then(args[0])
    return call?.apply(this, args)
  }

/** Lends a client to a handler. */
function lend(pooled: PoolClient, query: (...args: unknown[]) => unknown): PoolClient {
  const lent = {
    query,
    // The inbox releases the client.
    release() {},
    async end(callback?: () => void) {
      callback?.()
    },
  }
  return new Proxy(pooled, {
    get: (target, name, receiver) => Reflect.get(Object.hasOwn(lent, name) ? lent : target, name, receiver),
  })
}
