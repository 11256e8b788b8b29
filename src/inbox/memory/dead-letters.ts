import { LRUCache } from 'lru-cache'
import { sizeOf } from '../../events/json.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { unreadableDeadLetter, unreadableKey } from '../engine/stored.ts'
import { pageOf } from '../operations/page.ts'
import { replayAll } from '../operations/replay-all.ts'
import type {
  DeadEvent,
  DeadLetter,
  DeadLetters,
  ReplayAllOptions,
  ReplayReport,
  UnreadableDelivery,
} from '../reading.ts'

/** The number of unreadable deliveries that are kept, the newest. Few, since a function has little memory. */
const maxUnreadable = 100

/** The memory that dead letters may take, in bytes, for each of `maxEvents`. Few are as large. */
const sizeOfEach = 32_768

/** Dead letters in memory: the newest events, and the newest unreadable deliveries. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #events: LRUCache<string, DeadEvent>
  readonly #unreadable: LRUCache<string, DeadLetter>
  readonly #replay: (deadEvent: DeadEvent) => void
  readonly #replayUnreadable: (unreadable: UnreadableDelivery) => Promise<void>

  /**
   * @param maxEvents the number of events that are kept
   * @param replay throws when the event cannot be taken; the dead letter is kept then
   * @param replayUnreadable rejects in those cases, and when the delivery still cannot be parsed
   * @param onDropped called with a dead letter that was dropped to make room for another
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
    // A cache does not keep what is larger than all of it.
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

  /** Adds an unreadable delivery, unless it is there. */
  async addUnreadable({ body, ...rest }: UnreadableDelivery): Promise<void> {
    // A copy: what the receiver was given belongs to the application, and may be part of a larger buffer.
    const unreadable = { ...rest, body: new Uint8Array(body) }
    const deadLetter = unreadableDeadLetter(unreadable, await unreadableKey(unreadable))
    if (!this.#unreadable.has(deadLetter.key)) this.#unreadable.set(deadLetter.key, deadLetter)
  }

  list(page?: Parameters<DeadLetters['list']>[0]): readonly DeadLetter[] {
    const { limit, offset } = pageOf(page)
    // A cache iterates from the most recently used. Only adding counts as use here, so the newest comes first.
    return [...this.#unreadable.values(), ...this.#events.values()]
      .sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime())
      .slice(offset, offset + limit)
  }

  get(key: string): DeadLetter | undefined {
    return this.#events.peek(key) ?? this.#unreadable.peek(key)
  }

  /** Returns the dead letter with that key, if it is an event. */
  event(key: string): DeadEvent | undefined {
    return this.#events.peek(key)
  }

  /** Returns the dead letters that are events, newest first. */
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
    const all = () => this.list({ limit: this.size }).toReversed()
    return replayAll(this, options, async (matches) => all().flatMap((each) => (matches(each) ? each.key : [])))
  }

  discard(key: string): boolean {
    return this.#events.delete(key) || this.#unreadable.delete(key)
  }
}
