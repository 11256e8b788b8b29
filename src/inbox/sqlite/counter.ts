import type { SqliteDatabase } from './connection.ts'
import { counter } from './statements.ts'

interface Counts {
  readonly next: number
  readonly unfinished: number
}

/** Takes ids, and counts unfinished events. Reads its row once in a transaction, and writes it at the end. */
export class Counter {
  readonly #read
  readonly #write
  #stored: Counts | undefined
  #counts: Counts | undefined

  constructor(database: SqliteDatabase) {
    this.#read = database.prepare(counter.read)
    this.#write = database.prepare(counter.write)
  }

  #current(): Counts {
    this.#stored ??= this.#read.get() as Counts
    this.#counts ??= this.#stored
    return this.#counts
  }

  get unfinished(): number {
    return this.#current().unfinished
  }

  /** Id of the next event. It is free until {@link stored}. */
  get next(): number {
    return this.#current().next
  }

  /** The next id is taken, by an unfinished event or by something else. */
  stored(isUnfinished = true): void {
    const { next, unfinished } = this.#current()
    this.#counts = { next: next + 1, unfinished: unfinished + Number(isUnfinished) }
  }

  ended(): void {
    const { next, unfinished } = this.#current()
    this.#counts = { next, unfinished: unfinished - 1 }
  }

  /** Runs a function in the caller's transaction, and writes what it changed. */
  keep<T>(run: () => T): T {
    this.#stored = undefined
    this.#counts = undefined
    const result = run()
    if (this.#counts !== this.#stored) this.#write.run(this.#current().next, this.#current().unfinished)
    return result
  }
}
