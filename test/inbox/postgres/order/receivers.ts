import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../../../support/seeded.ts'
import { Forked } from '../forked.ts'
import type { FromOrdered, Numbered, OrderTask, ToOrdered } from './task.ts'

/** A process with a receiver, and the deliveries that it has not answered. */
class ReceiverProcess {
  readonly #unanswered = new Map<number, (status: number) => void>()
  readonly #process: Forked<FromOrdered, ToOrdered>
  isPaused = false

  constructor(program: string, task: OrderTask) {
    this.#process = new Forked(program, task, ({ id, status }) => this.#unanswered.get(id)?.(status))
    void this.#process.ended.then(() => {
      for (const answer of this.#unanswered.values()) answer(0)
    })
  }

  /** Makes a delivery. Resolves with its status, 0 if the process ends before it answers. */
  async deliver(id: number, event: Numbered): Promise<number> {
    if (this.#process.hasEnded) return 0
    const status = new Promise<number>((resolve) => this.#unanswered.set(id, resolve))
    this.#process.tell({ id, ...event })
    return status.finally(() => this.#unanswered.delete(id))
  }

  async pause(forMs: number): Promise<void> {
    this.isPaused = true
    this.#process.pause()
    await sleep(forMs)
    this.#process.resume()
    this.isPaused = false
  }

  async kill(): Promise<void> {
    if (this.#process.hasEnded) throw new Error('a receiver ended by itself')
    await this.#process.kill()
  }
}

/** Receivers in processes of their own, over one database. */
export class Receivers {
  readonly #create: () => ReceiverProcess
  readonly #processes: ReceiverProcess[]
  readonly #random: () => number
  #deliveries = 0
  kills = 0

  constructor(program: string, task: OrderTask, size: number) {
    let processes = 0
    this.#random = seeded(task.seed)
    this.#create = () => new ReceiverProcess(program, { ...task, seed: task.seed + ++processes })
    this.#processes = Array.from({ length: size }, this.#create)
  }

  /** Delivers an event to one process after another, until one has acknowledged it. */
  async deliver(event: Numbered): Promise<void> {
    for (;;) {
      const running = this.#processes.filter(({ isPaused }) => !isPaused)
      const process = running[Math.floor(this.#random() * running.length)]
      if ((await process?.deliver(this.#deliveries++, event)) === 200) return
      await sleep(5)
    }
  }

  /** Kills the next process and replaces it. The one after it is paused, if a time is given. */
  async kill(delayMs?: number): Promise<void> {
    const place = this.kills++ % this.#processes.length
    const paused = this.#processes[(place + 1) % this.#processes.length]
    if (delayMs !== undefined) void paused?.pause(delayMs)
    await this.#processes[place]?.kill()
    this.#processes[place] = this.#create()
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#processes.map((process) => process.kill()))
  }
}
