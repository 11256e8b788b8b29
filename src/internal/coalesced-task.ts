import { sleep } from './timers.ts'

/** Runs something at once, then once per interval for all calls in it. */
export class CoalescedTask {
  readonly #run: () => unknown
  readonly #intervalMs: () => number
  #isDue = false
  #isBusy = false
  #isStopped = false

  constructor(run: () => unknown, intervalMs: () => number) {
    this.#run = run
    this.#intervalMs = intervalMs
  }

  call(): void {
    this.#isDue = true
    if (!this.#isBusy) void this.#loop()
  }

  async #loop(): Promise<void> {
    this.#isBusy = true
    while (this.#isDue && !this.#isStopped) {
      this.#isDue = false
      await this.#run()
      await sleep(this.#intervalMs())
    }
    this.#isBusy = false
  }

  /** Runs what is due, then nothing more. */
  async stop(): Promise<void> {
    const isDue = this.#isDue && !this.#isStopped
    this.#isStopped = true
    if (isDue) await this.#run()
  }
}
