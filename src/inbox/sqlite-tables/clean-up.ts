import type { Logger } from '../../internal/logger.ts'
import type { DeadLetter } from '../reading.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import { keysPerCleanUp, prepareCleanUp } from './statements.ts'
import type { SqliteTables } from './storage.ts'

export interface CleanUpLimits {
  readonly ttlMs: number
  readonly maxDeadLetters: number
}

/**
 * Removes expired keys and ends of expectations, and dead letters beyond their limit. Their pages are used again, so the
 * file stops growing.
 */
export class SqliteCleanUp {
  readonly #deadLetters: SqliteDeadLetters
  readonly #limits: CleanUpLimits
  readonly #sql: ReturnType<typeof prepareCleanUp>
  /** The last id of the previous slice. */
  #after = 0

  constructor({ database, deadLetters }: SqliteTables, limits: CleanUpLimits) {
    this.#deadLetters = deadLetters
    this.#limits = limits
    this.#sql = prepareCleanUp(database)
  }

  /** Drops some dead letters, or removes some keys or ends, as part of a transaction. `goesOn`: there may be more. */
  step(): { readonly dropped: readonly DeadLetter[]; readonly goesOn: boolean } {
    const dropped = this.#deadLetters.trim(this.#limits.maxDeadLetters)
    return { dropped, goesOn: dropped.length > 0 || this.#removeSlice() || this.#forgetEnds() }
  }

  /** Returns `true` if the next slice of the keys may also have expired ones. */
  #removeSlice(): boolean {
    const { oldest, newest } = this.#kept()
    const end = this.#sql.lastOfSlice.get(this.#after) as { id: number; accepted_at: number } | undefined
    this.#sql.remove.run(this.#after, end?.id ?? Number.MAX_SAFE_INTEGER, oldest, newest)
    const goesOn = end !== undefined && (end.accepted_at < oldest || end.accepted_at > newest)
    // It goes back to the first key, because keys that were kept for unfinished events expire in no order.
    this.#after = goesOn ? end.id : 0
    return goesOn
  }

  /** Returns `true` if there may be more expired ends. */
  #forgetEnds(): boolean {
    const { oldest, newest } = this.#kept()
    return Number(this.#sql.forgetEnds.run(oldest, newest).changes) === keysPerCleanUp
  }

  /** The times of acceptance that are remembered. */
  #kept(): { readonly oldest: number; readonly newest: number } {
    const now = Date.now()
    return { oldest: now - this.#limits.ttlMs, newest: now + this.#limits.ttlMs }
  }
}

export function logDropped(dropped: readonly DeadLetter[], logger: Logger): void {
  for (const { key } of dropped) logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
}
