import { nextTurn } from './timers.ts'

/** Longest work between turns (ms), and so the longest that deliveries wait. */
const maxMs = 5

/** Yields to the event loop during work over many rows. Call `due` before each row, and await what it returns. */
export class LoopYields {
  #since = performance.now()

  due(): Promise<void> | undefined {
    return performance.now() - this.#since < maxMs ? undefined : this.#yield()
  }

  async #yield(): Promise<void> {
    await nextTurn()
    this.#since = performance.now()
  }
}
