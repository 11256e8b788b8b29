import { LRUCache } from 'lru-cache'
import { sizeOf } from '../../events/json.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { unreadableDeadLetter, unreadableKey } from '../engine/stored.ts'
import { checkPage } from '../operations/page.ts'
import { matching, replayAll } from '../operations/replay-all.ts'
import type {
  DeadEvent,
  DeadLetter,
  DeadLetters,
  ReplayAllOptions,
  ReplayReport,
  UnreadableDelivery,
} from '../reading.ts'

/** Unreadable deliveries kept, newest first. Few, because functions have little memory. */
const maxUnreadable = 100

/** Memory budget per dead letter (bytes). Few need it all. */
const sizeOfEach = 32_768

/** Dead letters in memory: the newest events and the newest unreadable deliveries. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #events: LRUCache<string, DeadEvent>
  readonly #unreadable: LRUCache<string, DeadLetter>
  readonly #replay: (deadEvent: DeadEvent) => void
  readonly #replayUnreadable: (unreadable: UnreadableDelivery) => Promise<void>

  /**
   * @param replay throws if the event can't be accepted; its dead letter stays. `replayUnreadable` likewise rejects
   * @param onDropped called with each dead letter evicted for a newer one
   */
  constructor(
    maxEvents: number,
    replay: (deadEvent: DeadEvent) => void,
    replayUnreadable: (unreadable: UnreadableDelivery) => Promise<void>,
    onDropped: (deadLetter: DeadLetter) => void,
  ) {
    this.#replay = replay
    this.#replayUnreadable = replayUnreadable
    const dispose = (deadLetter: DeadLetter, _key: string, reason: string) => {
      if (reason === 'evict') onDropped(deadLetter)
    }
    const maxSize = maxEvents * sizeOfEach
    // The cache rejects entries larger than its whole budget.
    const sizeCalculation = ({ event }: DeadEvent) => Math.min(sizeOf(event), maxSize)
    this.#events = new LRUCache<string, DeadEvent>({ max: maxEvents, maxSize, sizeCalculation, dispose })
    this.#unreadable = new LRUCache<string, DeadLetter>({ max: maxUnreadable, dispose })
  }

  get size(): number {
    return this.#events.size + this.#unreadable.size
  }

  add(deadEvent: DeadEvent): void {
    this.#events.set(deadEvent.key, deadEvent)
  }

  /** Adds an unreadable delivery, unless it is already kept. */
  async addUnreadable({ body, ...rest }: UnreadableDelivery): Promise<void> {
    // Copy the body: the application owns it, and it may be a slice of a larger buffer.
    const unreadable = { ...rest, body: new Uint8Array(body) }
    const deadLetter = unreadableDeadLetter(unreadable, await unreadableKey(unreadable))
    if (!this.#unreadable.has(deadLetter.key)) this.#unreadable.set(deadLetter.key, deadLetter)
  }

  list(page?: Parameters<DeadLetters['list']>[0]): readonly DeadLetter[] {
    const { limit, offset } = checkPage(page)
    // Adding is the only use that counts here, so the most recently used is the newest.
    return [...this.#unreadable.values(), ...this.#events.values()]
      .sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime())
      .slice(offset, offset + limit)
  }

  get(key: string): DeadLetter | undefined {
    return this.#events.peek(key) ?? this.#unreadable.peek(key)
  }

  event(key: string): DeadEvent | undefined {
    return this.#events.peek(key)
  }

  /** Returns the events, newest first. */
  events(): Iterable<DeadEvent> {
    return this.#events.values()
  }

  replay(key: string): MaybePromise<boolean> {
    const deadEvent = this.#events.peek(key)
    if (deadEvent !== undefined) {
      this.#replay(deadEvent)
      return this.#events.delete(key)
    }
    const unreadable = this.#unreadable.peek(key)?.unreadable
    return unreadable !== undefined && this.#replayUnreadable(unreadable).then(() => this.#unreadable.delete(key))
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    const found = () => this.list({ limit: this.size }).filter(matching(options))
    return replayAll(this, options, () =>
      found()
        .map(({ key }) => key)
        .reverse(),
    )
  }

  discard(key: string): boolean {
    return this.#events.delete(key) || this.#unreadable.delete(key)
  }
}
