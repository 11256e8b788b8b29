import { Forked } from '../postgres/forked.ts'
import type { FromKilled, KillTask, ToKilled } from './child.ts'
import type { Moment } from './judge.ts'

/** A receiver in a process that will be killed. */
export class Killed {
  readonly #process: Forked<FromKilled, ToKilled>
  readonly #name: string
  #url: string | undefined
  #hear: (message: FromKilled) => void = () => {}

  private constructor(program: string, task: KillTask) {
    this.#name = task.name
    this.#process = new Forked(program, task, (message) => this.#hear(message))
  }

  /** Starts a bundled program. Resolves once it listens. */
  static async start(program: string, task: KillTask): Promise<Killed> {
    const killed = new Killed(program, task)
    const message = await killed.#message()
    killed.#url = (message as { url: string }).url
    return killed
  }

  /** Its URL until it is killed. */
  get urls(): readonly string[] {
    return this.#url === undefined || this.#process.hasEnded ? [] : [this.#url]
  }

  #message(): Promise<FromKilled> {
    const ended = this.#process.ended.then(() => Promise.reject(new Error(`${this.#name} ended by itself`)))
    return Promise.race([
      ended,
      new Promise<FromKilled>((resolve) => {
        this.#hear = resolve
      }),
    ])
  }

  /** Waits until it has handled every event, and recorded that. Returns when it was asked. */
  async settled(): Promise<Moment> {
    for (;;) {
      const at = Date.now()
      const answer = this.#message()
      this.#process.tell('unfinished')
      if (((await answer) as { unfinished: number }).unfinished === 0) return { process: this.#name, at }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  pause(): void {
    this.#process.pause()
  }

  resume(): void {
    this.#process.resume()
  }

  async kill(): Promise<Moment> {
    if (this.#process.hasEnded) throw new Error(`${this.#name} ended by itself`)
    this.#url = undefined
    const at = Date.now()
    await this.#process.kill()
    return { process: this.#name, at }
  }

  /** Ends it at the end of a run. It then does not count as killed. */
  async end(): Promise<void> {
    if (!this.#process.hasEnded) await this.#process.kill()
  }
}
