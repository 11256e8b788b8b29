import { crypto } from '../../internal/realm.ts'
import { handlersJson, type PublishedHandlers } from '../engine/owed-handlers.ts'
import type { HandlerName } from '../inbox.ts'
import type { EventQueue } from './queue.ts'
import { repeat } from './repeat.ts'

/** Longest delay before publishing is retried (ms). */
const afterFailureMs = 1_000

/** The handlers of all running processes. Each publishes its own in Redis, renewed every third of a lease. */
export class LiveHandlers {
  readonly #queue: EventQueue
  readonly #own: () => readonly HandlerName[]
  readonly #leaseMs: number
  readonly #ttlMs: number
  readonly #id = crypto.randomUUID()
  readonly #stop: () => void
  #published: readonly HandlerName[] = []

  /** @param ttlMs how long a removed handler's name is kept */
  constructor(queue: EventQueue, own: () => readonly HandlerName[], leaseMs: number, ttlMs: number) {
    this.#queue = queue
    this.#own = own
    this.#leaseMs = leaseMs
    this.#ttlMs = ttlMs
    // The inbox logs outages.
    this.#stop = repeat(() =>
      this.read().then(
        () => leaseMs / 3,
        () => Math.min(leaseMs / 3, afterFailureMs),
      ),
    )
  }

  publish(): Promise<unknown> | undefined {
    return this.#published === this.#own() ? undefined : this.read()
  }

  /** Reads all processes' handlers, and publishes this one's. */
  async read(): Promise<PublishedHandlers> {
    const own = this.#own()
    const [live, removed] = await this.#queue.reach(() => this.#write(own))
    this.#published = own
    return { live: live.map((handlers) => JSON.parse(handlers)), removed: removed.map((name) => JSON.parse(name)) }
  }

  #write(own: readonly HandlerName[]): Promise<[live: string[], removed: string[]]> {
    const names = new Set([...this.#published, ...own].map(({ name }) => JSON.stringify(name)))
    const parameters = [this.#id, Math.ceil(this.#leaseMs), Math.ceil(this.#ttlMs), handlersJson(own), ...names]
    return this.#queue.own.run('publishHandlers', ...parameters)
  }

  stop(): void {
    this.#stop()
    // If Redis is unreachable, they expire.
    if (this.#queue.isReady) this.#write([]).catch(() => {})
  }
}
