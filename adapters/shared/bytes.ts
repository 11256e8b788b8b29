/**
 * Collects the chunks of a body. Nearly every delivery has one chunk, which is kept as it is. More chunks are copied
 * into one buffer, since a body that arrives byte by byte would otherwise take a hundred times its size in memory.
 */
export class Bytes {
  size = 0
  #bytes: Uint8Array | undefined

  add(chunk: Uint8Array): void {
    const size = this.size + chunk.byteLength
    if (this.#bytes === undefined) {
      this.#bytes = chunk
    } else {
      if (size > this.#bytes.byteLength) this.#grow(size)
      this.#bytes.set(chunk, this.size)
    }
    this.size = size
  }

  all(): Uint8Array {
    return this.#bytes?.subarray(0, this.size) ?? new Uint8Array()
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(2 * needed)
    larger.set(this.all())
    this.#bytes = larger
  }
}
