/** Somebody who waits for a turn. */
interface Waiter {
  readonly start: () => void
  next?: Waiter
}

/** The turns of one webhook, those that are taken and those that are waited for. */
interface Lane {
  taken: number
  first?: Waiter | undefined
  last?: Waiter | undefined
}

/**
 * Gives out turns, so many at once. Within a lane they are given in order. A lane may take no more than are left free
 * (the only one a half of all, each of two a third, and so on), so that a lane that keeps its turns for long does not
 * hold up the others.
 */
export class Turns {
  #free: number
  /** The one that has waited longest for a turn first. */
  readonly #lanes = new Map<string, Lane>()

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /**
   * Resolves when it is one's turn, with a function that ends it.
   * @throws the signal's reason when it is aborted by then
   */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const lane = this.#lanes.get(name) ?? { taken: 0 }
    this.#lanes.set(name, lane)
    await new Promise<void>((start) => {
      const waiter = { start }
      if (lane.last) lane.last.next = waiter
      else lane.first = waiter
      lane.last = waiter
      this.#give()
    })
    if (signal.aborted) this.#end(name, lane)
    signal.throwIfAborted()
    return () => this.#end(name, lane)
  }

  #end(name: string, lane: Lane): void {
    this.#free += 1
    lane.taken -= 1
    if (lane.taken === 0 && lane.first === undefined) this.#lanes.delete(name)
    this.#give()
  }

  #give(): void {
    for (const [name, lane] of this.#lanes) {
      if (this.#free === 0) return
      if (lane.first === undefined || lane.taken >= this.#free) continue
      const { start, next } = lane.first
      lane.first = next
      if (next === undefined) lane.last = undefined
      lane.taken += 1
      this.#free -= 1
      // To the end of the line.
      this.#lanes.delete(name)
      this.#lanes.set(name, lane)
      start()
    }
  }
}
