/**
 * Gathers the chunks of a body. The first is kept as it is, since nearly every delivery has only one; more are copied
 * together, as a body that trickles in byte by byte would else cost a hundred times its size.
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
