import { nextTurn } from '../../internal/timers.ts'
import type { SqliteDatabase } from './database.ts'
import { prepareClaims } from './statements.ts'

/** The number of unfinished events. Counting takes some turns, in which events are stored and end. */
export class UnfinishedCount {
  readonly #ids: ReturnType<typeof prepareClaims>['ids']
  readonly #rowsPerTurn: number
  #number = 0
  /** The events up to this id are counted. */
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

  /** Others have changed the rows. */
  startOver(): void {
    this.#number = 0
    this.#upTo = 0
  }

  /** Counts no more: the tables are closed. */
  stop(): void {
    this.#upTo = Number.POSITIVE_INFINITY
  }

  /** Counts what is not counted yet. `undefined`: nothing. If the rows can't be read, the next call goes on. */
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
