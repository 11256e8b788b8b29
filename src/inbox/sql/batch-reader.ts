import { encoder } from '../../internal/utf8.ts'
import type { Database } from './database.ts'

/** Text a statement sends or returns (bytes). Takes 1 s at 1 MB/s, and the usual timeout is 2 s. */
const maxBytes = 1_000_000

/** Floor for the limit (bytes). A timeout on less is probably Postgres hanging. */
const minBytes = 16_000

/** Time until the full size is tried again (ms). */
const recoveryMs = 60_000

/** Rows of the first batch: about a megabyte of the largest events. */
const firstSize = 16

/** Bytes per statement. Halves for a minute after a timeout. */
export class ByteLimit {
  #most = maxBytes
  #halvedAt = Number.NEGATIVE_INFINITY

  get most(): number {
    if (performance.now() - this.#halvedAt > recoveryMs) this.#most = maxBytes
    return this.#most
  }

  /** Call after a timeout, with the size of the statement. */
  exceeded(bytes: number): void {
    this.#most = Math.max(minBytes, Math.min(this.most, bytes) / 2)
    this.#halvedAt = performance.now()
  }

  /** Number of items that fit into a statement, the one that crosses the limit included. */
  fitting<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
    let bytes = 0
    const last = items.findIndex((item) => {
      bytes += bytesOf(item)
      return bytes >= this.most
    })
    return last === -1 ? items.length : last + 1
  }
}

/** Reads many rows in batches, sized by the bytes of earlier rows and halved after a timeout. */
export class BatchReader {
  readonly #database: Pick<Database, 'failure'>
  readonly #most: number
  readonly #limit = new ByteLimit()
  #size = firstSize

  constructor(database: Pick<Database, 'failure'>, most: number) {
    this.#database = database
    this.#most = most
  }

  get size(): number {
    return Math.min(this.#size, this.#most)
  }

  async run<Row extends object>(step: (size: number) => Promise<Row[]>): Promise<Row[]> {
    for (;;) {
      try {
        const rows = await step(this.size)
        const bytes = bytesOf(rows)
        const fitting =
          rows.length === 0 ? this.size : Math.floor((this.#limit.most * rows.length) / Math.max(bytes, 1))
        this.#size = Math.max(1, Math.min(fitting, 4 * this.size))
        return rows
      } catch (error) {
        if (this.size === 1 || this.#database.failure(error) !== 'timeout') throw error
        this.#size = Math.ceil(this.size / 2)
        this.#limit.exceeded(this.#limit.most)
      }
    }
  }
}

export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return encoder.encode(value).byteLength
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, part) => sum + bytesOf(part), 0)
}
