import type { Expiry } from '../sql/database.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import { expire, expiryPage } from './statements.ts'

/** Delay before the next page (ms): after the last one, after one that may have removed rows. */
const delayMs = { done: 500, busy: 20 }

/** Walks through events and lanes page by page, from the start again and again. SQLite reuses the pages of the file. */
export class Expiration {
  readonly #ttlMs: number
  readonly #sql
  #event = 0
  #lane = -1

  constructor(database: SqliteDatabase, ttlMs: number) {
    this.#ttlMs = ttlMs
    this.#sql = prepareAll(database, expire)
  }

  /** Deletes what has expired of a page, in the caller's transaction. */
  next(): Expiry {
    const now = Date.now()
    const kept = [now - this.#ttlMs, now + this.#ttlMs] as const
    const hasMoreEnds = Number(this.#sql.ends.run(...kept).changes) === expiryPage
    const hasMore = this.#expireEvents(kept) || hasMoreEnds
    this.#removeIdleLanes()
    return { nextInMs: hasMore ? delayMs.busy : delayMs.done }
  }

  #expireEvents([oldestKept, newestKept]: readonly [number, number]): boolean {
    type Page = Record<'count' | 'oldest' | 'newest', number> & { readonly last: number | null }
    const { last, count, oldest, newest } = this.#sql.page.get(this.#event) as Page
    const page = [this.#event, last ?? this.#event, oldestKept, newestKept]
    const media = this.#sql.media.all(...page) as { media: number | null }[]
    if (media.length > 0) this.#sql.events.run(...page)
    for (const lane of media) if (lane.media !== null) this.#sql.lane.run(lane.media)
    // Ids are in order of acceptance: once a page has only young events, so have all later ones.
    const isLast = count < expiryPage || (oldest >= oldestKept && newest <= newestKept)
    this.#event = isLast ? 0 : (last as number)
    return !isLast
  }

  #removeIdleLanes(): void {
    const { last } = this.#sql.lanePage.get(this.#lane) as { last: number | null }
    if (last !== null) this.#sql.lanes.run(this.#lane, last)
    this.#lane = last ?? -1
  }
}
