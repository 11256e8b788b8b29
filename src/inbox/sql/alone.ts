import type { HeldLane } from './lane.ts'

/**
 * The permit to run an event that may have made a process crash: one at a time, so that the next crash tells which. A
 * lane has it from before its event is counted until the end is recorded, but not while a limit holds it.
 */
export class Alone {
  #lane: HeldLane | undefined
  readonly #waiting: HeldLane[] = []
  readonly #called: (lane: HeldLane) => void

  /** @param called called when a lane that waited has the permit */
  constructor(called: (lane: HeldLane) => void) {
    this.#called = called
  }

  /** Lanes that wait for the permit. */
  get waiting(): readonly HeldLane[] {
    return this.#waiting
  }

  /** Takes the permit, or returns `false` and queues the lane. */
  enter(lane: HeldLane): boolean {
    this.#lane ??= lane
    if (this.#lane === lane) return true
    this.#waiting.push(lane)
    return false
  }

  leave(lane: HeldLane): void {
    const at = this.#waiting.indexOf(lane)
    if (at >= 0) this.#waiting.splice(at, 1)
    if (this.#lane !== lane) return
    this.#lane = this.#waiting.shift()
    if (this.#lane !== undefined) this.#called(this.#lane)
  }
}
