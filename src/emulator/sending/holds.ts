interface Held {
  readonly timer: NodeJS.Timeout
  readonly letGo: () => void
}

/** How long an event is held back while none comes that could overtake it, in ms. */
const holdMs = 10_000

/** However fast the time: the next event needs some to come. */
const shortestHoldMs = 50

/** Holds events back until the next one for the same webhook has overtaken them. */
export class Holds {
  readonly #ms: number
  readonly #held = new Map<string, Held>()

  constructor(timeScale: number) {
    this.#ms = Math.max(holdMs * timeScale, shortestHoldMs)
  }

  /** Resolves when the event may go. */
  hold(webhookId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const letGo = () => {
        clearTimeout(held.timer)
        if (this.#held.get(webhookId) === held) this.#held.delete(webhookId)
        resolve()
      }
      const held = { letGo, timer: setTimeout(letGo, this.#ms) }
      this.#held.set(webhookId, held)
      signal.addEventListener('abort', letGo, { once: true })
    })
  }

  /**
   * Begins to overtake the event that is held back, which waits from now on however long it takes.
   * @returns what is to be called when it has been overtaken; `undefined` when none is held back
   */
  overtake(webhookId: string): (() => void) | undefined {
    const held = this.#held.get(webhookId)
    // So that the event after the one that overtakes it can be held back in its turn.
    this.#held.delete(webhookId)
    clearTimeout(held?.timer)
    return held?.letGo
  }
}
