import type { Expiry } from '../sql/database.ts'
import * as sql from './statements.ts'
import { type PostgresStep, transaction } from './step.ts'

/** Delay before the next page (ms): after the last one, after one that may have removed rows. */
const delayMs = { done: 60_000, busy: 100 }

/** Before the first lane. */
const firstLane = '-9223372036854775808'

/** Walks through all events by pages of ids, and through all lanes, from the start again and again. */
export class Expiration {
  readonly #schema: string
  readonly #ttlMs: number
  #event = '0'
  #lane = firstLane

  constructor(schema: string, ttlMs: number) {
    this.#schema = schema
    this.#ttlMs = ttlMs
  }

  /** @param taker a new id, under which idle lanes are taken */
  next(taker: string): PostgresStep<Expiry> {
    const values = [this.#event, this.#ttlMs, taker, this.#lane]
    const isFirst = this.#event === '0'
    const pages = sql.expire(this.#schema).map((text) => ({ name: '', text, values }))
    const correct = isFirst ? [sql.correctClock(this.#schema)] : []
    return {
      on: 'patient',
      parts: transaction('SET LOCAL jit = off', ...correct, ...pages),
      read: (results) => {
        const [page] = results.at(-2) as unknown as [
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
