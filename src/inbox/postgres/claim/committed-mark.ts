import { literal } from '../schema.ts'

/** Selects the last id that an event has been given. */
export const lastId = (schema: string): string =>
  `coalesce(pg_sequence_last_value(${literal(`${schema}.event_id`)}), 0)`

/**
 * A part of a WITH that gives the transaction its id. Read it before the ids of events are taken: `nextval` does so only for
 * every 32nd id, and a claim must see the transaction of each id.
 */
export const writing = 'writing AS MATERIALIZED (SELECT pg_current_xact_id())'

/** The transactions of Postgres at a claim. */
export interface TransactionsSeen {
  /** The last id that an event had been given at the end of the claim. */
  readonly lastId: string
  /** The oldest transaction that was writing at its beginning, and the one that would come next. */
  readonly oldest: string
  readonly next: string
}

/** Selects {@link TransactionsSeen} as JSON. */
export const transactionsSeen = (schema: string): string => `json_build_object(
  'lastId', ${lastId(schema)}::text,
  'oldest', pg_snapshot_xmin(pg_current_snapshot())::text, 'next', pg_snapshot_xmax(pg_current_snapshot())::text
)`

/**
 * Finds out up to which id no event is still being committed. The ids up to that of one claim were given to transactions
 * that had begun before the next claim. Once these have ended, a claim sees all of their events. Snapshots do not matter.
 */
export class CommittedMark {
  #id = '0'
  #lastId: string | undefined
  #pending: { readonly id: string; readonly before: bigint } | undefined

  get id(): string {
    return this.#id
  }

  saw({ lastId, oldest, next }: TransactionsSeen): void {
    // The sequence began again, as after a failover to a logical replica.
    if (Number(lastId) < Number(this.#lastId)) this.#reset()
    if (this.#pending !== undefined && BigInt(oldest) >= this.#pending.before) {
      this.#id = this.#pending.id
      this.#pending = undefined
    }
    if (this.#lastId !== undefined) this.#pending ??= { id: this.#lastId, before: BigInt(next) }
    this.#lastId = lastId
  }

  #reset(): void {
    this.#id = '0'
    this.#lastId = undefined
    this.#pending = undefined
  }
}
