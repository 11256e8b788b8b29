import { type Timer, unref } from '../../internal/timers.ts'
import { handlersJson } from '../engine/owed-handlers.ts'
import type { HandlerName } from '../inbox.ts'
import type { EventQueue } from './queue.ts'
import { publishHandlersScript, removeHandlersScript } from './scripts.ts'

/**
 * The handlers of the running processes. Each process publishes its own in Redis, and renews them every third of a
 * lease.
 */
export class LiveHandlers {
  readonly #queue: EventQueue
  readonly #own: () => readonly HandlerName[]
  readonly #leaseMs: number
  readonly #renewed: () => void
  readonly #id = crypto.randomUUID()
  #published: readonly HandlerName[] | undefined
  #timer: Timer | undefined
  #isStopped = false

  /**
   * @param own the handlers of this process, another array after each change
   * @param renewed called after each renewal
   */
  constructor(queue: EventQueue, own: () => readonly HandlerName[], leaseMs: number, renewed: () => void) {
    this.#queue = queue
    this.#own = own
    this.#leaseMs = leaseMs
    this.#renewed = renewed
    this.#renewIn(0)
  }

  #renewIn(ms: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      // The inbox logs an outage of Redis.
      const failed = () => this.#renewIn(Math.min(this.#leaseMs / 3, 1_000))
      this.#renew().then(() => this.#renewIn(this.#leaseMs / 3), failed)
    }, ms)
    unref(this.#timer)
  }

  async #renew(): Promise<void> {
    await this.read()
    this.#renewed()
  }

  /** Publishes the handlers of this process if they have changed. */
  publish(): Promise<void> | undefined {
    return this.#published === this.#own() ? undefined : this.read().then(() => {})
  }

  /** Reads the handlers of each live process, and publishes those of this one. */
  async read(): Promise<readonly (readonly HandlerName[])[]> {
    const own = this.#own()
    const of = [this.#id, Math.ceil(this.#leaseMs), handlersJson(own)]
    const live = await this.#queue.reach(() => this.#queue.run<string[]>(publishHandlersScript, ...of))
    this.#published = own
    return live.map((handlers) => JSON.parse(handlers))
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    // If Redis is unreachable, the published handlers expire.
    if (this.#queue.isReady) this.#queue.run(removeHandlersScript, this.#id).catch(() => {})
  }
}
