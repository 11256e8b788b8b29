import { handlersJson, type PublishedHandlers } from '../engine/owed-handlers.ts'
import type { HandlerName } from '../inbox.ts'
import type { EventQueue } from './queue.ts'
import { repeat } from './repeat.ts'

/** Maximum delay before handlers are published again after a failure (ms). */
const afterFailureMs = 1_000

/**
 * The handlers of the running processes. Each process publishes its own in Redis, and renews them every third of a
 * lease.
 */
export class LiveHandlers {
  readonly #queue: EventQueue
  readonly #own: () => readonly HandlerName[]
  readonly #leaseMs: number
  readonly #ttlMs: number
  readonly #id = crypto.randomUUID()
  readonly #stop: () => void
  #published: readonly HandlerName[] = []

  /**
   * @param own the handlers of this process, another array after each change
   * @param ttlMs the time for which the name of a removed handler is kept (ms)
   */
  constructor(queue: EventQueue, own: () => readonly HandlerName[], leaseMs: number, ttlMs: number) {
    this.#queue = queue
    this.#own = own
    this.#leaseMs = leaseMs
    this.#ttlMs = ttlMs
    // The inbox logs an outage of Redis.
    this.#stop = repeat(() =>
      this.read().then(
        () => leaseMs / 3,
        () => Math.min(leaseMs / 3, afterFailureMs),
      ),
    )
  }

  /** Publishes the handlers of this process if they have changed. */
  publish(): Promise<unknown> | undefined {
    return this.#published === this.#own() ? undefined : this.read()
  }

  /** Reads the handlers of all processes, and publishes those of this one. */
  async read(): Promise<PublishedHandlers> {
    const own = this.#own()
    const [live, removed] = await this.#queue.reach(() => this.#write(own))
    this.#published = own
    return { live: live.map((handlers) => JSON.parse(handlers)), removed: removed.map((name) => JSON.parse(name)) }
  }

  /** Replaces what this process has published. */
  #write(own: readonly HandlerName[]): Promise<[live: string[], removed: string[]]> {
    const names = new Set([...this.#published, ...own].map(({ name }) => JSON.stringify(name)))
    const parameters = [this.#id, Math.ceil(this.#leaseMs), Math.ceil(this.#ttlMs), handlersJson(own), ...names]
    return this.#queue.own.run('publishHandlers', ...parameters)
  }

  stop(): void {
    this.#stop()
    // If Redis is unreachable, the published handlers expire.
    if (this.#queue.isReady) this.#write([]).catch(() => {})
  }
}
