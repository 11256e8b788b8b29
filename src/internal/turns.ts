import { nextTurn } from './timers.ts'

/** Work between two turns (ms). Deliveries wait this long at most. */
const maxMs = 5

/** Gives the event loop turns during work over many rows. Ask before each row, and await the turn if one is due. */
export class Turns {
  #since = performance.now()

  due(): Promise<void> | undefined {
    return performance.now() - this.#since < maxMs ? undefined : this.#yield()
  }

  async #yield(): Promise<void> {
    await nextTurn()
    this.#since = performance.now()
  }
}
