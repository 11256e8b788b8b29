import type { Pool, PoolClient } from 'pg'
import { WebhookError } from '../../errors.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import { releaseClient, take } from './pool.ts'

/** Maximum wait for the answer to a commit or a rollback, in ms. */
const answerMs = 10_000

/**
 * Takes a client of the pool. If none is free before the signal is aborted, the next free one goes back to the pool.
 */
export function connect(pool: Pool, signal: AbortSignal): Promise<PoolClient> {
  const connected = take(pool)
  return unlessAborted(signal, connected).catch((error) => {
    connected.then((client) => releaseClient(client)).catch(() => {})
    throw error
  })
}

/** A client of the pool during a transaction. An aborted signal closes its connection, so that nothing is committed. */
export class TransactionClient {
  readonly pooled: PoolClient
  /** The client that a handler gets. */
  readonly lent: PoolClient
  readonly #signal: AbortSignal
  readonly #abort = () => this.#release(this.#signal.reason)
  readonly #onError = (error: Error) => {
    this.#brokenBy ??= error
  }
  #brokenBy: (Error & { code?: string }) | undefined
  #isLent = true
  #isReleased = false

  constructor(pooled: PoolClient, signal: AbortSignal) {
    this.pooled = pooled
    this.lent = lend(pooled, () => this.#isLent)
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
    pooled.on('error', this.#onError)
  }

  /** `true` if the connection broke. Postgres also ends it if the handler's transaction is idle for too long. */
  get isLost(): boolean {
    return this.#brokenBy !== undefined && this.#brokenBy.code !== '25P03'
  }

  async commit(text: string): Promise<void> {
    // It is too late to abort now: only the database knows whether it has committed.
    this.#signal.removeEventListener('abort', this.#abort)
    this.#isLent = false
    try {
      await this.pooled.query({ text, query_timeout: answerMs } as { text: string })
    } catch (error) {
      const code = (error as { code?: string }).code ?? ''
      // Postgres has not answered, so it would not answer a rollback.
      if (!/^[0-9A-Z]{5}$/.test(code)) {
        this.#onError(error as Error)
        this.#release(error as Error)
      }
      throw error
    }
    this.#release()
  }

  async rollBack(): Promise<void> {
    this.#isLent = false
    if (this.#isReleased) return
    await this.pooled.query({ text: 'ROLLBACK', query_timeout: answerMs } as { text: string }).then(
      () => this.#release(),
      (error) => this.#release(error),
    )
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

/**
 * Lends a client of the pool to a handler. Another handler may have the client later, so a late query is rejected. pg
 * runs the earlier queries in their order, and COMMIT or ROLLBACK after them.
 */
function lend(pooled: PoolClient, isLent: () => boolean): PoolClient {
  const lent = {
    query(...args: unknown[]) {
      if (isLent()) return Reflect.apply(pooled.query, pooled, args)
      const problem = 'a query was sent after the transaction had ended. Await every query in its function'
      return Promise.reject(new WebhookError('invalid_transaction', `context.transaction: ${problem}`))
    },
    // The inbox releases the client.
    release() {},
  }
  return new Proxy(pooled, {
    get: (target, name, receiver) => Reflect.get(Object.hasOwn(lent, name) ? lent : target, name, receiver),
  })
}
