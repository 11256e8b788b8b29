import { literal } from '../schema.ts'

/** Selects the last event id handed out. */
export const lastId = (schema: string): string =>
  `coalesce(pg_sequence_last_value(${literal(`${schema}.event_id`)}), 0)`

/**
 * WITH part that assigns the transaction id. Read it before `nextval`, which does so only for every 32nd event id: a
 * claim must see the transaction behind each.
 */
export const writing = 'writing AS MATERIALIZED (SELECT pg_current_xact_id())'

export interface TransactionsSeen {
  /** Last event id handed out by the end of the claim. */
  readonly lastId: string
  /** Oldest writing transaction at the start of the claim, and the next one to come. */
  readonly oldest: string
  readonly next: string
}

export const transactionsSeen = (schema: string): string => `json_build_object(
  'lastId', ${lastId(schema)}::text,
  'oldest', pg_snapshot_xmin(pg_current_snapshot())::text, 'next', pg_snapshot_xmax(pg_current_snapshot())::text
)`

/**
 * High-water mark of committed events: none up to this id is still being committed. Ids handed out by one claim belong
 * to transactions begun before the next; once these end, claims see all their events.
 */
export class CommittedMark {
  #id = '0'
  #lastId: string | undefined
  #pending: { readonly id: string; readonly before: bigint } | undefined

  get id(): string {
    return this.#id
  }

  saw({ lastId, oldest, next }: TransactionsSeen): void {
    // The sequence restarted, as after a failover to a logical replica.
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
