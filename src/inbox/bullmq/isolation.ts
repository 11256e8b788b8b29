import { within } from '../../internal/timers.ts'

/** How long a suspect runs alone, and how long it waits for the others to end (ms). */
const aloneMs = 10_000

/**
 * Runs events side by side, but suspects alone. A suspect was running when a process crashed; if the process crashes
 * again, the suspect is the cause. After `aloneMs` the others continue beside it, so a slow handler doesn't block them.
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
