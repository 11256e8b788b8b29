import { within } from '../../internal/timers.ts'

/** Maximum time that an event runs alone, and maximum time that it waits for others to end, in ms. */
const aloneMs = 10_000

/**
 * Runs events side by side, and a suspect alone. A suspect is an event that was running when a process ended. If the
 * process ends again, the suspect is the cause. After `aloneMs` the others continue beside it, so that one long handler
 * does not hold them up.
 */
export class Isolation {
  #running = 0
  /** Pending while a suspect runs alone. */
  #alone: Promise<void> | undefined
  #onIdle = () => {}

  async beside<T>(run: () => Promise<T>): Promise<T> {
    while (this.#alone !== undefined) await this.#alone
    this.#running++
    try {
      return await run()
    } finally {
      this.#running--
      if (this.#running === 0) this.#onIdle()
    }
  }

  async alone<T>(run: () => Promise<T>): Promise<T> {
    while (this.#alone !== undefined) await this.#alone
    let letOthersIn = () => {}
    this.#alone = new Promise<void>((resolve) => {
      letOthersIn = resolve
    }).then(() => {
      this.#alone = undefined
    })
    await within(aloneMs, this.#idle(), () => {})
    const timer = setTimeout(letOthersIn, aloneMs)
    try {
      return await run()
    } finally {
      clearTimeout(timer)
      letOthersIn()
    }
  }

  async #idle(): Promise<void> {
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }
}
