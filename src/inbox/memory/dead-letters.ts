import { LRUCache } from 'lru-cache'
import type { DeadEvent, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { replayAll } from '../shared/replay-all.ts'

/** Dead letters in memory: the `max` newest. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #deadLetters: LRUCache<string, DeadEvent>
  readonly #replay: (deadLetter: DeadEvent) => void

  /**
   * @param replay throws when the event cannot be taken; the dead letter is kept then
   * @param onDropped called with a dead letter that was dropped to make room for another
   */
  constructor(max: number, replay: (deadLetter: DeadEvent) => void, onDropped: (deadLetter: DeadEvent) => void) {
    this.#replay = replay
    this.#deadLetters = new LRUCache({
      max,
      dispose: (deadLetter, _key, reason) => {
        if (reason === 'evict') onDropped(deadLetter)
      },
    })
  }

  get size(): number {
    return this.#deadLetters.size
  }

  add(deadLetter: DeadEvent): void {
    this.#deadLetters.set(deadLetter.key, deadLetter)
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadEvent[] {
    // The cache iterates from the most recently used. Only adding counts as use here, so the newest comes first.
    return [...this.#deadLetters.values()].slice(offset, offset + limit)
  }

  get(key: string): DeadEvent | undefined {
    return this.#deadLetters.peek(key)
  }

  replay(key: string): boolean {
    const deadLetter = this.#deadLetters.peek(key)
    if (deadLetter === undefined) return false
    this.#replay(deadLetter)
    return this.#deadLetters.delete(key)
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    return replayAll(this, options)
  }

  discard(key: string): boolean {
    return this.#deadLetters.delete(key)
  }
}
