import type { Pool, PoolClient } from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { Attempt, InboxHost } from '../inbox.ts'
import type { PostgresJob } from './job.ts'
import { giveBack, take } from './pool.ts'

/** The longest wait for the answer to a commit or a rollback, in ms. */
const answerMs = 10_000

export interface TransactionsOptions {
  readonly pool: Pool
  readonly schema: string
  readonly leaseMs: number
  readonly measured: InboxHost['measured']
}

/** Makes the transactions of the handlers of a claimed event. */
export function transactions({ pool, schema, leaseMs, measured }: TransactionsOptions) {
  // A process that was suspended must not keep its locks longer than its lease. The mark ends with the transaction.
  const begin = (owner: string) =>
    `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${leaseMs}; SET LOCAL media_webhooks.owner = '${owner}'`

  return ({ id, owner }: PostgresJob): Attempt['transaction'] => {
    const transact: NonNullable<Attempt['transaction']> = async ({ handler, signal }, run) => {
      const client = new Client(await connect(pool, signal), signal)
      try {
        signal.throwIfAborted()
        await client.pooled.query(begin(owner))
        const result = await unlessAborted(signal, run(client.pooled as never))
        signal.throwIfAborted()
        const name = client.pooled.escapeLiteral(handler.replaceAll('\0', ''))
        await client.commit(completeAndCommit(schema, id, owner, name))
        return result
      } catch (error) {
        await client.rollBack()
        throw signal.aborted ? signal.reason : error
      }
    }
    return (scope, run) => measure(measured, 'transaction', () => transact(scope, run))
  }
}

/**
 * Records that the handler has completed, and commits, in one message. Where another process has the event, or the handler
 * has completed, no row is updated: the division fails then, and Postgres does not run the commit. Where `run` has ended
 * the transaction, the mark is empty, which is no uuid.
 * @param handler the quoted name of the handler
 */
const completeAndCommit = (schema: string, id: string, owner: string, handler: string): string => `
  SELECT current_setting('media_webhooks.owner')::uuid;
  WITH held AS (
    UPDATE ${schema}.event SET completed = completed || ${handler}::text
    WHERE id = ${id} AND owner = '${owner}' AND NOT ${handler}::text = ANY (completed) RETURNING 1
  ) SELECT 1 / count(*) FROM held;
  COMMIT`

/** The errors of {@link completeAndCommit} by the code of Postgres. */
const commitErrors: Readonly<Record<string, () => WebhookError>> = {
  '22012': () => new WebhookError('lease_lost', 'another process has the event, so the transaction was rolled back'),
  '22P02': () =>
    new WebhookError(
      'invalid_transaction',
      'context.transaction: its function has ended the transaction, as a transaction of Drizzle or Kysely on the same ' +
        'client does. What it wrote is committed without the record. Use a savepoint instead',
    ),
}

/** Takes a client of the pool. One that is free only after the signal is aborted goes back to the pool. */
function connect(pool: Pool, signal: AbortSignal): Promise<PoolClient> {
  const connected = take(pool)
  return unlessAborted(signal, connected).catch((error) => {
    connected.then((client) => giveBack(client)).catch(() => {})
    throw error
  })
}

/** A client of the pool during a transaction. An aborted signal closes its connection, so that nothing is committed. */
class Client {
  readonly pooled: PoolClient
  readonly #signal: AbortSignal
  readonly #abort = () => this.#release(this.#signal.reason)
  #isReleased = false

  constructor(pooled: PoolClient, signal: AbortSignal) {
    this.pooled = pooled
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
  }

  async commit(text: string): Promise<void> {
    // From here on it is too late to abort: only the database knows whether it has committed.
    this.#signal.removeEventListener('abort', this.#abort)
    try {
      await this.pooled.query({ text, query_timeout: answerMs } as { text: string })
    } catch (error) {
      const code = (error as { code?: string }).code ?? ''
      // Postgres has not answered, so it would not answer to a rollback.
      if (!/^[0-9A-Z]{5}$/.test(code)) this.#release(error as Error)
      throw commitErrors[code]?.() ?? error
    }
    this.#release()
  }

  async rollBack(): Promise<void> {
    if (this.#isReleased) return
    await this.pooled.query({ text: 'ROLLBACK', query_timeout: answerMs } as { text: string }).then(
      () => this.#release(),
      (error) => this.#release(error),
    )
  }

  #release(error?: Error): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#signal.removeEventListener('abort', this.#abort)
    giveBack(this.pooled, error)
  }
}
