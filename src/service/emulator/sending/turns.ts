interface Waiter {
  readonly start: () => void
  next?: Waiter
}

/** Turns that one webhook uses, and those that wait for one, first in, first out. */
interface WaitingQueue {
  taken: number
  first?: Waiter | undefined
  last?: Waiter | undefined
}

/**
 * Limits concurrent turns. FIFO within a queue. A queue may take no more turns than it leaves free, so a slow one can't
 * starve the others: a single queue gets at most half of all turns, two queues a third each, and so on.
 */
export class SendingTurns {
  #free: number
  /** Round-robin order: new and just-served queues go last. */
  readonly #queues = new Map<string, WaitingQueue>()

  constructor(maxConcurrent: number) {
    this.#free = maxConcurrent
  }

  /** Waits for a turn and returns a function that ends it. If the signal has aborted by then, throws its reason. */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const queue = this.#queues.get(name) ?? { taken: 0 }
    this.#queues.set(name, queue)
    await new Promise<void>((start) => {
      const waiter = { start }
      if (queue.last) queue.last.next = waiter
      else queue.first = waiter
      queue.last = waiter
      this.#startNext()
    })
    if (signal.aborted) this.#end(name, queue)
    signal.throwIfAborted()
    return () => this.#end(name, queue)
  }

  #end(name: string, queue: WaitingQueue): void {
    this.#free += 1
    queue.taken -= 1
    if (queue.taken === 0 && queue.first === undefined) this.#queues.delete(name)
    this.#startNext()
  }

  #startNext(): void {
    for (const [name, queue] of this.#queues) {
      if (this.#free === 0) return
      if (queue.first === undefined || queue.taken >= this.#free) continue
      const { start, next } = queue.first
      queue.first = next
      if (next === undefined) queue.last = undefined
      queue.taken += 1
      this.#free -= 1
      // Its queue goes to the end of the round.
      this.#queues.delete(name)
      this.#queues.set(name, queue)
      start()
    }
  }
}
