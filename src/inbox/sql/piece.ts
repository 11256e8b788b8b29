import { encoder } from '../../internal/utf8.ts'

/** Bytes of the texts that a statement takes or returns. At 1 MB/s they arrive within the usual 2 s. */
const maxBytes = 1_000_000

/** Bytes that are tried even if less did not arrive in time: Postgres may have hung. */
const minBytes = 16_000

/** Time after which as much as before is tried again (ms). */
const recoveryMs = 60_000

/** Number of rows of the first piece: that many of the largest events are about a megabyte. */
const firstSize = 16

/** Limits the bytes of a statement: after one that took too long, to half as many for a minute. */
export class ByteLimit {
  #most = maxBytes
  #halvedAt = Number.NEGATIVE_INFINITY

  get most(): number {
    if (performance.now() - this.#halvedAt > recoveryMs) this.#most = maxBytes
    return this.#most
  }

  /** A statement of that many bytes took too long. */
  exceeded(bytes: number): void {
    this.#most = Math.max(minBytes, Math.min(this.most, bytes) / 2)
    this.#halvedAt = performance.now()
  }

  /** Returns how many of the items fit into a statement, the one that reaches the limit included. */
  fitting<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
    let bytes = 0
    const last = items.findIndex((item) => {
      bytes += bytesOf(item)
      return bytes >= this.most
    })
    return last === -1 ? items.length : last + 1
  }
}

/** Cuts what reads many rows into pieces: by the bytes of the rows so far, and by half after a timeout. */
export class Piece {
  readonly #most: number
  readonly #limit = new ByteLimit()
  #size = firstSize

  /** @param most the maximum number of rows of a piece */
  constructor(most: number) {
    this.#most = most
  }

  /** The number of rows of the next piece. */
  get size(): number {
    return Math.min(this.#size, this.#most)
  }

  /** Runs a step over the next piece, again with half of it after a timeout. */
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
        if (this.size === 1 || !isTimeout(error)) throw error
        this.#size = Math.ceil(this.size / 2)
        this.#limit.exceeded(this.#limit.most)
      }
    }
  }
}

/** The bytes of the texts in a value. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return encoder.encode(value).byteLength
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, part) => sum + bytesOf(part), 0)
}

/** Returns `true` if a statement, or the one whose error this error wraps, took too long. */
export function isTimeout(error: unknown): boolean {
  const { code, message, cause } = Object(error)
  return code === '57014' || /^Query read timeout/.test(`${message}`) || (cause !== undefined && isTimeout(cause))
}
