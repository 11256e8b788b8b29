interface Waiter {
  readonly start: () => void
  next?: Waiter
}

/** Turns in use and the FIFO of waiters. */
interface Line {
  taken: number
  first?: Waiter | undefined
  last?: Waiter | undefined
}

/**
 * Limits concurrent turns. FIFO within a lane. A lane may take no more turns than it leaves free, so a slow one can't
 * starve the others: a single lane gets at most half of all turns, two lanes a third each, and so on.
 */
export class SendingTurns {
  #free: number
  /** Round-robin order: new and just-served lanes go last. */
  readonly #lines = new Map<string, Line>()

  constructor(maxConcurrent: number) {
    this.#free = maxConcurrent
  }

  /** Waits for a turn and returns a function that ends it. If the signal has aborted by then, throws its reason. */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const lane = this.#lines.get(name) ?? { taken: 0 }
    this.#lines.set(name, lane)
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

  #end(name: string, lane: Line): void {
    this.#free += 1
    lane.taken -= 1
    if (lane.taken === 0 && lane.first === undefined) this.#lines.delete(name)
    this.#startNext()
  }

  #startNext(): void {
    for (const [name, lane] of this.#lines) {
      if (this.#free === 0) return
      if (lane.first === undefined || lane.taken >= this.#free) continue
      const { start, next } = lane.first
      lane.first = next
      if (next === undefined) lane.last = undefined
      lane.taken += 1
      this.#free -= 1
      // Move the lane to the end of the line.
      this.#lines.delete(name)
      this.#lines.set(name, lane)
      start()
    }
  }
}
