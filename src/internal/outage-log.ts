/** Logs only the first failure of an outage. */
export class OutageLog {
  #isOut = false

  failed(log: () => void): void {
    if (!this.#isOut) log()
    this.#isOut = true
  }

  worked(): void {
    this.#isOut = false
  }
}
