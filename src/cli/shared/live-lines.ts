export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  /** Terminal width (characters). */
  readonly columns?: number
}

const standardColumns = 80

/** Redraws the last lines of a terminal. Other streams show none. */
export class LiveLines {
  readonly #output: Output
  #lines: readonly string[] = []
  #drawn = 0

  constructor(output: Output) {
    this.#output = output
  }

  show(lines: readonly string[]): void {
    this.erase()
    this.#lines = lines
    this.draw()
  }

  /** Clears the lines to print above them; `draw` restores them. */
  erase(): void {
    if (this.#drawn > 0) this.#output.write(`\u001b[${this.#drawn}F\u001b[J`)
    this.#drawn = 0
  }

  draw(): void {
    const { isTTY, columns = standardColumns } = this.#output
    if (isTTY !== true || this.#lines.length === 0) return
    // Cut: a wrapped line would count as two.
    for (const line of this.#lines) this.#output.write(`${line.slice(0, columns - 1)}\n`)
    this.#drawn = this.#lines.length
  }
}
