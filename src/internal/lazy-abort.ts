/** A lazy abort signal. An AbortController costs as much as a delivery's HMAC, and most handlers never read it. */
export class LazyAbort {
  #controller: AbortController | undefined
  #reason: unknown

  get aborted(): boolean {
    return this.#reason !== undefined
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  abort(reason: Error): void {
    this.#reason ??= reason
    this.#controller?.abort(this.#reason)
  }
}
