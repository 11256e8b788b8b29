import { nextTurn } from '../../internal/timers.ts'
import type { SqliteDatabase } from './database.ts'
import { prepareClaims } from './statements.ts'

/** Number of unfinished events. Counting takes several turns, while events come and go. */
export class UnfinishedCount {
  readonly #ids: ReturnType<typeof prepareClaims>['ids']
  readonly #rowsPerTurn: number
  #number = 0
  /** Events up to this id are counted. */
  #upTo = 0
  #counting: Promise<void> | undefined

  constructor(database: SqliteDatabase, rowsPerTurn: number) {
    this.#ids = prepareClaims(database).ids
    this.#rowsPerTurn = rowsPerTurn
  }

  get number(): number {
    return this.#number
  }

  stored(id: number): void {
    if (id <= this.#upTo) this.#number++
  }

  ended(id: number): void {
    if (id <= this.#upTo) this.#number--
  }

  startOver(): void {
    this.#number = 0
    this.#upTo = 0
  }

  stop(): void {
    this.#upTo = Number.POSITIVE_INFINITY
  }

  /** Counts the rest. `undefined` if nothing is left to count. After a failed read, the next call continues. */
  finish(): Promise<void> | undefined {
    if (this.#counting !== undefined) return this.#counting
    this.#countSome()
    if (this.#upTo === Number.POSITIVE_INFINITY) return undefined
    this.#counting = this.#countRest().finally(() => {
      this.#counting = undefined
    })
    this.#counting.catch(() => {})
    return this.#counting
  }

  async #countRest(): Promise<void> {
    while (this.#upTo < Number.POSITIVE_INFINITY) {
      await nextTurn()
      this.#countSome()
    }
  }

  #countSome(): void {
    if (this.#upTo === Number.POSITIVE_INFINITY) return
    const ids = this.#ids.all(this.#upTo, this.#rowsPerTurn) as { id: number }[]
    this.#number += ids.length
    this.#upTo = ids.length < this.#rowsPerTurn ? Number.POSITIVE_INFINITY : (ids.at(-1) as { id: number }).id
  }
}
