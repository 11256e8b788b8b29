/**
 * An abort signal that is made when it is first read. An AbortController costs as much as the HMAC of a delivery, and
 * most handlers never read their signal.
 */
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
