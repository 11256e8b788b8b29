/**
 * A Map for short-lived entries. V8 resizes a Map's table with every burst, which costs a fifth of a delivery's CPU.
 * Permanent padding keeps the table at one size.
 */
export class ChurnMap<Key, Value> {
  readonly #entries = new Map<Key | symbol, Value | undefined>()

  constructor() {
    for (let i = 0; i < padding; i++) this.#entries.set(Symbol(), undefined)
  }

  get size(): number {
    return this.#entries.size - padding
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

/** Entries that never leave. */
const padding = 128
