/** A stream that a command writes to. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  /** The width of a terminal, in characters. */
  readonly columns?: number
}

const standardColumns = 80

/** The last lines of a terminal, which are redrawn. A stream that is not a terminal shows none. */
export class LiveLines {
  readonly #output: Output
  #lines: readonly string[] = []
  #drawn = 0

  constructor(output: Output) {
    this.#output = output
  }

  /** Replaces the lines. */
  show(lines: readonly string[]): void {
    this.erase()
    this.#lines = lines
    this.draw()
  }

  /** Clears the lines, so that something can be written in their place. `draw` shows them again, below it. */
  erase(): void {
    if (this.#drawn > 0) this.#output.write(`\u001b[${this.#drawn}F\u001b[J`)
    this.#drawn = 0
  }

  draw(): void {
    const { isTTY, columns = standardColumns } = this.#output
    if (isTTY !== true || this.#lines.length === 0) return
    // A line that wraps would count as two.
    for (const line of this.#lines) this.#output.write(`${line.slice(0, columns - 1)}\n`)
    this.#drawn = this.#lines.length
  }
}
