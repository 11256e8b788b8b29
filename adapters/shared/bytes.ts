/** Collects chunks. A lone chunk is not copied. A list of many tiny chunks would take 100 times the body's size. */
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
