interface Held {
  readonly timer: NodeJS.Timeout
  readonly release: () => void
}

/** Longest hold if no other event arrives (ms). */
const holdMs = 10_000

/** Shortest hold at any time scale (ms): the next event needs time to arrive. */
const minHoldMs = 50

/** Holds events back until the webhook's next event has overtaken them. */
export class Holds {
  readonly #ms: number
  readonly #held = new Map<string, Held>()

  constructor(timeScale: number) {
    this.#ms = Math.max(holdMs * timeScale, minHoldMs)
  }

  /** Holds an event back. Resolves once it may be sent, at the latest when the signal aborts. */
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
   * Starts to overtake a webhook's held event, which then waits without a time limit.
   * @returns a function to call once the event is overtaken, or `undefined` if none is held
   */
  overtake(webhookId: string): (() => void) | undefined {
    const held = this.#held.get(webhookId)
    // Removed now, so the next event can be held back while this one overtakes.
    this.#held.delete(webhookId)
    clearTimeout(held?.timer)
    return held?.release
  }
}
