import type { Expiry } from '../sql/database.ts'
import * as sql from './statements.ts'
import { type PostgresStep, query, transaction } from './step.ts'

/** Delay before the next page (ms): after the last one, after one that may have removed rows. */
const delayMs = { done: 60_000, busy: 100 }

/** Before the first lane. */
const firstLane = '-9223372036854775808'

/** Walks through all events by pages of ids, and through all lanes, from the start again and again. */
export class Expiration {
  readonly #ttlMs: number
  #event = '0'
  #lane = firstLane

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs
  }

  /** @param taker a new id, under which idle lanes are taken */
  next(taker: string): PostgresStep<Expiry> {
    const values = [this.#event, this.#ttlMs, taker, this.#lane]
    const pages = sql.expire.map((text) => query(text, ...values))
    const correct = this.#event === '0' && this.#lane === firstLane ? sql.correctClock : []
    return {
      on: 'patient',
      parts: transaction(sql.useIndexes, ...correct, ...pages),
      read: (results) => {
        const [page] = results.at(-1 - pages.length) as unknown as [
          { last: string | null; count: number; young: boolean; lane: string | null },
        ]
        const isLastPage = page.count < sql.expiryPage || page.young
        this.#event = isLastPage ? '0' : (page.last as string)
        this.#lane = page.lane ?? firstLane
        return { nextInMs: isLastPage && page.lane === null ? delayMs.done : delayMs.busy }
      },
    }
  }
}
