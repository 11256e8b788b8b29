/** Closes something. Resolves with `false` if that failed, and never rejects. */
type Close = (signal: NodeJS.Signals) => Promise<boolean>

const signals = ['SIGTERM', 'SIGINT'] as const

const ofProcess = Symbol.for('media-webhooks.shutdown')

/** The end of this process on a signal: everything is closed, then the process exits. */
export class Shutdown {
  readonly #closes = new Set<Close>()
  #hasBegun = false

  /** One for all copies of this module: the first to close must not end the process for the others. */
  static ofProcess(): Shutdown {
    const shared = process as { [ofProcess]?: Shutdown }
    shared[ofProcess] ??= new Shutdown()
    return shared[ofProcess]
  }

  /** @returns removes it again, unless a signal has come */
  add(close: Close): () => void {
    // Not `once`: a second signal would end the process. nodemon sends two, and so does Ctrl-C under npm.
    if (this.#closes.size === 0) for (const signal of signals) process.on(signal, this.#onSignal)
    this.#closes.add(close)
    return () => {
      if (this.#hasBegun || !this.#closes.delete(close) || this.#closes.size > 0) return
      for (const signal of signals) process.off(signal, this.#onSignal)
    }
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (this.#hasBegun) return
    this.#hasBegun = true
    void this.#closeAll(signal)
  }

  async #closeAll(signal: NodeJS.Signals): Promise<void> {
    const results = await Promise.all(Array.from(this.#closes, (close) => close(signal)))
    if (results.includes(false)) process.exitCode ||= 1
    process.exit()
  }
}
