interface Held {
  readonly timer: NodeJS.Timeout
  readonly release: () => void
}

/** The time for which an event is held back when no other event arrives, in ms. */
const holdMs = 10_000

/** Minimum hold, in ms, at any time scale: the next event needs time to arrive. */
const minHoldMs = 50

/** Holds events back until the next one for the same webhook has overtaken them. */
export class Holds {
  readonly #ms: number
  readonly #held = new Map<string, Held>()

  constructor(timeScale: number) {
    this.#ms = Math.max(holdMs * timeScale, minHoldMs)
  }

  /** Holds an event back. Resolves when the event may be sent, and at the latest when the signal aborts. */
  hold(webhookId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const release = () => {
        clearTimeout(held.timer)
        if (this.#held.get(webhookId) === held) this.#held.delete(webhookId)
        resolve()
      }
      const held = { release, timer: setTimeout(release, this.#ms) }
      this.#held.set(webhookId, held)
      signal.addEventListener('abort', release, { once: true })
    })
  }

  /**
   * Starts to overtake the held event of a webhook. From now on the held event waits without a time limit.
   * @returns a function to call once the event has been overtaken, or `undefined` when no event is held
   */
  overtake(webhookId: string): (() => void) | undefined {
    const held = this.#held.get(webhookId)
    // It is removed now, so that the next event can be held back while this one is being overtaken.
    this.#held.delete(webhookId)
    clearTimeout(held?.timer)
    return held?.release
  }
}
