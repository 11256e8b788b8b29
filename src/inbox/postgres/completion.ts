import { randomUUID } from 'node:crypto'
import type { PoolClient, QueryResult } from 'pg'
import { WebhookError } from '../../errors.ts'
import type { HeldEvent } from '../sql/event.ts'
import { isHeldSince } from './claim/claimed.ts'
import { literalOf, literals, type Parameter, parameter } from './literals.ts'
import { readOnly } from './storage-failure.ts'

export interface CompletionOptions {
  /** The quoted name of the schema. */
  readonly schema: string
  readonly leaseMs: number
  /** `false` if a statement that a connection prepares is not there for the next transaction. */
  readonly prepares: boolean
}

/**
 * Begins and commits the transactions of handlers, each with one message. The commit records that the handler has completed.
 *
 * The record is a statement that each connection prepares once. The rest are commands that need no plan. With unprepared
 * queries, a transaction with one INSERT took 1.35 times as much CPU: planning the record took longer than the INSERT. A
 * function in the schema was as fast as the prepared statement, and would be a change of the tables.
 */
export class Completion {
  readonly #schema: string
  readonly #leaseMs: number
  readonly #name = `media_webhooks_${randomUUID()}`
  readonly #prepared = new WeakSet<PoolClient>()
  #prepares: boolean

  constructor({ schema, leaseMs, prepares }: CompletionOptions) {
    this.#schema = schema
    this.#leaseMs = leaseMs
    this.#prepares = prepares
  }

  /**
   * Begins a transaction. Returns the message that commits it.
   * @param owner the process that holds the event
   * @param handler the name of the handler
   */
  async begin(client: PoolClient, event: HeldEvent, owner: string, handler: string): Promise<string> {
    const mustPrepare = this.#prepares && !this.#prepared.has(client)
    // Before BEGIN: it takes a snapshot, after which a handler could not set its isolation level.
    if (mustPrepare) await client.query(`PREPARE "${this.#name}" AS ${completionStatement(this.#schema, parameter)}`)
    if (mustPrepare) this.#prepared.add(client)
    // A process that was suspended must not keep its locks longer than its lease. The mark ends with the transaction.
    const results = await client.query(`
      BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${this.#leaseMs}; SET LOCAL media_webhooks.owner = '${owner}';
      SHOW role; SHOW transaction_read_only`)
    const [, , , shownRole, shownReadOnly] = results as unknown as QueryResult[]
    if (shownReadOnly?.rows[0].transaction_read_only === 'on') throw readOnly()
    const role = shownRole?.rows[0].role
    // The handler may have changed the role. If a statement fails, Postgres does not run the ones after it.
    return `SET LOCAL role = ${literalOf(role)}; ${this.#record([event.id, event.releases, handler.replaceAll('\0', ''), owner])}; COMMIT`
  }

  /** @param values the event's id, its releases, the handler and the owner */
  #record(values: readonly unknown[]): string {
    if (!this.#prepares) return completionStatement(this.#schema, literals(values))
    // While the table is small, Postgres would plan to read all of it, and keep the plan. The setting ends before the commit,
    // in which deferred triggers of the user's tables run.
    return `SET LOCAL enable_seqscan = off; EXECUTE "${this.#name}" (${values.map(literalOf)});
      SET LOCAL enable_seqscan TO DEFAULT`
  }

  /**
   * Returns `true` if a transaction failed because the connection has lost the prepared statement, as after DISCARD ALL, or
   * has it already, as behind a pooler. From then on, nothing is prepared.
   */
  cannotPrepare(error: unknown): boolean {
    const { code, message } = Object(error)
    const isLost = (code === '26000' || code === '42P05') && `${message}`.includes(this.#name)
    if (isLost) this.#prepares = false
    return isLost
  }
}

/**
 * If the function of the transaction has ended it, its mark is empty. If another process has the event, or the handler has
 * completed, no row is updated. Each case reads a setting that does not exist. A trigger of the user's tables cannot raise
 * this error, since deferred triggers run in the commit.
 */
const completionStatement = (schema: string, value: Parameter): string => {
  const [handler, owner] = [`${value(3)}::text`, `${value(4)}::text`]
  return `
    WITH held AS (
      UPDATE ${schema}.event SET completed = completed || ${handler}
      WHERE id = ${value(1)}::bigint AND ${isHeldSince(`${value(2)}::integer`)} AND NOT ${handler} = ANY (completed)
      RETURNING 1
    )
    SELECT CASE
      WHEN current_setting('media_webhooks.owner', true) IS DISTINCT FROM ${owner}
        THEN current_setting('media_webhooks.ended')
      WHEN count(*) = 0 THEN current_setting('media_webhooks.lost')
    END FROM held`
}

/** Makes the error of a commit for an error of Postgres. */
export function commitError(error: { code?: string; message: string }): Error {
  const setting = error.code === '42704' && /media_webhooks\.(ended|lost)/.exec(error.message)?.[1]
  if (setting === 'lost')
    return new WebhookError('lease_lost', 'another process has the event, so the transaction was rolled back')
  if (setting === 'ended')
    return new WebhookError(
      'invalid_transaction',
      'context.transaction: its function has ended the transaction, as a transaction of Drizzle or Kysely on the same ' +
        'client does. What it wrote is committed without the record. Use a savepoint instead',
    )
  return error as Error
}
