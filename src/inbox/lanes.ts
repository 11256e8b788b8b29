import { later } from '../internal/timers.ts'

/** Starts per event-loop turn, so synchronous handlers don't block the loop. */
const maxStartsPerTurn = 256

/**
 * Gives lanes their turns: each one at a time, up to `concurrency` side by side, in the order they asked. Turns start
 * after the event-loop turn that added them, so acknowledgements are written first.
 */
export class Lanes<Lane> {
  #concurrency: number
  readonly #start: (lane: Lane) => void
  /** Lanes in the middle of a turn, without a slot. */
  readonly #away = new Map<Lane, () => void>()
  /** In order. The first `#started` have started. */
  #ready: Lane[] = []
  #started = 0
  #running = 0
  #startsLeft = 0
  #isScheduled = false

  /** @param start begins a lane's turn. Call {@link done} at its end */
  constructor(concurrency: number, start: (lane: Lane) => void) {
    this.#concurrency = concurrency
    this.#start = start
  }

  /** Turns under way. */
  get running(): number {
    return this.#running
  }

  /** Lanes that wait for their turn. */
  get waiting(): number {
    return this.#ready.length - this.#started
  }

  /** Changes the concurrency. 0 starts nothing. */
  limit(concurrency: number): void {
    this.#concurrency = concurrency
    this.#schedule()
  }

  /** Adds a lane at the end. */
  add(lane: Lane): void {
    this.#ready.push(lane)
    this.#schedule()
  }

  /** Adds a lane whose turn had come before, right behind the next one: others must not starve. */
  addNext(lane: Lane): void {
    this.#ready.splice(this.#started + 1, 0, lane)
    this.#schedule()
  }

  /** Ends a turn. */
  done(): void {
    this.#running--
    if (this.waiting === 0) return
    if (this.#startsLeft > 0) this.#startReady()
    else this.#schedule()
  }

  /** Frees the slot of a lane in the middle of its turn. Resolves once {@link addNext} has brought it another. */
  away(lane: Lane): Promise<void> {
    this.done()
    return new Promise((resolve) => this.#away.set(lane, resolve))
  }

  /** Frees the slot of a lane in the middle of its turn, while it waits. Resolves with another. */
  whileWaiting(lane: Lane, wait: Promise<void>): Promise<void> {
    void wait.then(() => this.addNext(lane))
    return this.away(lane)
  }

  /** Takes out the lanes that wait for their turn, but not those in the middle of one. */
  clear(): void {
    this.#ready = this.#ready.slice(this.#started).filter((lane) => this.#away.has(lane))
    this.#started = 0
  }

  #schedule(): void {
    if (this.#isScheduled || this.#running >= this.#concurrency || this.waiting === 0) return
    later(() => {
      this.#isScheduled = false
      this.#startsLeft = maxStartsPerTurn
      this.#startReady()
    })
    this.#isScheduled = true
  }

  #startReady(): void {
    while (this.#running < this.#concurrency && this.#startsLeft > 0 && this.waiting > 0) {
      const lane = this.#ready[this.#started++] as Lane
      this.#startsLeft--
      this.#running++
      if (this.#away.size === 0 || !this.#goOn(lane)) this.#start(lane)
    }
    if (this.waiting > 0) this.#schedule()
    // Dropped in bulk: a shift per lane would be quadratic.
    if (this.waiting > 0 && this.#started < 1_024) return
    this.#ready = this.#ready.slice(this.#started)
    this.#started = 0
  }

  /** False if the lane is not in the middle of a turn. */
  #goOn(lane: Lane): boolean {
    this.#away.get(lane)?.()
    return this.#away.delete(lane)
  }
}
