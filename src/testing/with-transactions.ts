import { WebhookError } from '../errors.ts'
import type { Attempt, InboxDefinition, Transactional, TransactionScope } from '../inbox/inbox.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { unlessAborted } from '../internal/unless-aborted.ts'

/** Runs `run` in a transaction: commits once it resolves, rolls back and rejects if it rejects. */
export type BeginTransaction<Client> = (run: (client: Client) => Promise<void>) => Promise<unknown>

/**
 * Gives `context.transaction` to the handlers of any inbox, to test handlers for `postgresInbox` without Postgres. The
 * inbox records a completed handler after the commit, not in it.
 *
 * ```ts
 * const inbox = withTransactions<Tx>(memoryInbox(), (run) => db.transaction(run))
 * ```
 * @typeParam Client the client that handlers write with; not inferred from `begin`
 * @param begin runs each transaction. Without a database: `(run) => run(fake)`
 * @throws WebhookError `invalid_option`
 */
export function withTransactions<Client>(
  definition: InboxDefinition,
  begin: BeginTransaction<Client>,
): InboxDefinition<Transactional<Client>> {
  if (typeof definition?.open !== 'function' || typeof begin !== 'function')
    throw new WebhookError(
      'invalid_option',
      'withTransactions: give it an inbox and a function that begins a transaction',
    )
  return {
    ...(definition as Omit<InboxDefinition, 'additions'>),
    open: ({ handle, ...host }) =>
      definition.open({
        ...host,
        handle: (accepted, attempt) => handle(accepted, new TransactionalAttempt(attempt, begin)),
      }),
  }
}

class TransactionalAttempt<Client> implements Attempt {
  readonly #attempt: Attempt
  readonly #begin: BeginTransaction<Client>

  constructor(attempt: Attempt, begin: BeginTransaction<Client>) {
    this.#attempt = attempt
    this.#begin = begin
  }

  get number(): number {
    return this.#attempt.number
  }

  get completed(): readonly string[] {
    return this.#attempt.completed
  }

  get aborted(): boolean {
    return this.#attempt.aborted
  }

  get signal(): AbortSignal {
    return this.#attempt.signal
  }

  succeeded(handler: string): MaybePromise<void> {
    return this.#attempt.succeeded?.(handler)
  }

  async transaction<Result>(
    { signal }: TransactionScope,
    run: (client: never) => MaybePromise<Result>,
  ): Promise<Result> {
    let result: { readonly value: Result } | undefined
    await this.#begin(async (client) => {
      result = undefined
      signal.throwIfAborted()
      result = { value: await unlessAborted(signal, run(client as never)) }
    })
    if (result === undefined) throw new Error('begin committed a transaction whose function did not complete')
    return (result as { readonly value: Result }).value
  }
}
