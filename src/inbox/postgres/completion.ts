import { randomUUID } from 'node:crypto'
import type { PoolClient, QueryResult } from 'pg'
import { WebhookError } from '../../errors.ts'
import type { HeldEvent } from '../sql/event.ts'
import { isHeldSince } from './claim/claimed.ts'
import { literalOf, literals, type Parameter, parameter } from './literals.ts'
import { readOnly } from './storage-failure.ts'

export interface CompletionOptions {
  readonly schema: string
  readonly leaseMs: number
  /** False if a connection's prepared statements are gone in the next transaction. */
  readonly prepares: boolean
}

/**
 * Begins and commits handlers' transactions, each with one message. The commit records that the handler has completed.
 * Connections prepare that statement once: planning it took longer than a handler's INSERT. The rest are commands,
 * which need no plan. A function in the schema was as fast, but would be part of the tables.
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
   * Begins a handler's transaction. Returns the message that commits it. `owner`: the process that holds the event.
   */
  async begin(client: PoolClient, event: HeldEvent, owner: string, handler: string): Promise<string> {
    const mustPrepare = this.#prepares && !this.#prepared.has(client)
    // Before BEGIN: PREPARE takes a snapshot, after which the handler couldn't set the isolation level.
    if (mustPrepare) await client.query(`PREPARE "${this.#name}" AS ${completionStatement(this.#schema, parameter)}`)
    if (mustPrepare) this.#prepared.add(client)
    // A suspended process must not keep locks beyond its lease. The setting `owner` marks this transaction.
    const results = await client.query(`
      BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${this.#leaseMs}; SET LOCAL media_webhooks.owner = '${owner}';
      SHOW role; SHOW transaction_read_only`)
    const [, , , shownRole, shownReadOnly] = results as unknown as QueryResult[]
    if (shownReadOnly?.rows[0].transaction_read_only === 'on') throw readOnly()
    const role = shownRole?.rows[0].role
    // The handler may have changed the role. If a statement fails, Postgres skips those after it.
    return `SET LOCAL role = ${literalOf(role)}; ${this.#record([event.id, event.releases, handler.replaceAll('\0', ''), owner])}; COMMIT`
  }

  /** @param values event id, releases, handler, owner */
  #record(values: readonly unknown[]): string {
    if (!this.#prepares) return completionStatement(this.#schema, literals(values))
    // While the table is small, Postgres would plan to scan it, and keep that plan. Reset before the commit, which runs
    // deferred triggers of the user's tables.
    return `SET LOCAL enable_seqscan = off; EXECUTE "${this.#name}" (${values.map(literalOf)});
      SET LOCAL enable_seqscan TO DEFAULT`
  }

  /** True if the connection lost the prepared statement (DISCARD ALL), or has it already (pooler). Stops preparing. */
  cannotPrepare(error: unknown): boolean {
    const { code, message } = Object(error)
    const isLost = (code === '26000' || code === '42P05') && `${message}`.includes(this.#name)
    if (isLost) this.#prepares = false
    return isLost
  }
}

/**
 * Records the completion. The mark is missing if the handler ended the transaction; no row is updated if another
 * process holds the event, or the handler has completed. Either case reads a setting that doesn't exist. Triggers of
 * the user's tables can't raise this error: deferred ones run in the commit.
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

/** Translates an error of the commit. */
export function commitError(error: { code?: string; message: string }): Error {
  const setting = error.code === '42704' && /media_webhooks\.(ended|lost)/.exec(error.message)?.[1]
  if (setting === 'lost')
    return new WebhookError('lease_lost', 'another process holds the event now, so the transaction was rolled back')
  if (setting === 'ended')
    return new WebhookError(
      'invalid_transaction',
      'context.transaction: the function ended the transaction itself, as a transaction of Drizzle or Kysely on the ' +
        'same client does. Its writes are committed, but the handler does not count as completed. Use a savepoint',
    )
  return error as Error
}
