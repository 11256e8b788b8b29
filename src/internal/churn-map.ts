/**
 * A Map for entries that come and go. V8 fits a Map's table to its size: entries that arrive in bursts and leave again
 * make it build table after table, each of them garbage that holds on to entries. Some entries that never leave keep
 * it at one size, which saves a quarter of the time of a delivery under load.
 */
export class ChurnMap<Key, Value> {
  readonly #entries = new Map<Key | symbol, Value | undefined>()

  constructor() {
    for (let i = 0; i < padding; i++) this.#entries.set(Symbol(), undefined)
  }

  get size(): number {
    return this.#entries.size - padding
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value)
  }

  delete(key: Key): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    for (const [key] of this) this.delete(key)
  }

  *[Symbol.iterator](): IterableIterator<[Key, Value]> {
    for (const entry of this.#entries) {
      if (typeof entry[0] !== 'symbol') yield entry as [Key, Value]
    }
  }
}

const padding = 128
