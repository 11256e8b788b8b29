/** A caller that waits for a turn. */
interface Waiter {
  readonly start: () => void
  next?: Waiter
}

/** The turns of one webhook: how many are taken, and the queue of callers that wait. */
interface Lane {
  taken: number
  first?: Waiter | undefined
  last?: Waiter | undefined
}

/**
 * Limits the number of concurrent turns. Within a lane, turns are given in order. A lane may take no more turns than it
 * leaves free, so that a slow lane does not hold up the others. A single lane may take half of all turns, each of two
 * lanes a third, and so on.
 */
export class SendingTurns {
  #free: number
  /** The lane that has waited longest for a turn comes first. */
  readonly #lanes = new Map<string, Lane>()

  constructor(maxConcurrent: number) {
    this.#free = maxConcurrent
  }

  /**
   * Waits for a turn. Resolves with a function that ends the turn.
   * @throws the signal's reason when the signal is aborted before the turn starts
   */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const lane = this.#lanes.get(name) ?? { taken: 0 }
    this.#lanes.set(name, lane)
    await new Promise<void>((start) => {
      const waiter = { start }
      if (lane.last) lane.last.next = waiter
      else lane.first = waiter
      lane.last = waiter
      this.#startNext()
    })
    if (signal.aborted) this.#end(name, lane)
    signal.throwIfAborted()
    return () => this.#end(name, lane)
  }

  #end(name: string, lane: Lane): void {
    this.#free += 1
    lane.taken -= 1
    if (lane.taken === 0 && lane.first === undefined) this.#lanes.delete(name)
    this.#startNext()
  }

  #startNext(): void {
    for (const [name, lane] of this.#lanes) {
      if (this.#free === 0) return
      if (lane.first === undefined || lane.taken >= this.#free) continue
      const { start, next } = lane.first
      lane.first = next
      if (next === undefined) lane.last = undefined
      lane.taken += 1
      this.#free -= 1
      // Moves the lane to the end of the line.
      this.#lanes.delete(name)
      this.#lanes.set(name, lane)
      start()
    }
  }
}
