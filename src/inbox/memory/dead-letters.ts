import { LRUCache } from 'lru-cache'
import type { DeadEvent, DeadLetters } from '../inbox.ts'

/** Dead letters in memory: the `max` newest. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #letters: LRUCache<string, DeadEvent>
  readonly #replay: (letter: DeadEvent) => void

  /**
   * @param replay throws when the event cannot be taken; the letter is kept then
   * @param onDropped told of a letter that has to make room
   */
  constructor(max: number, replay: (letter: DeadEvent) => void, onDropped: (letter: DeadEvent) => void) {
    this.#replay = replay
    this.#letters = new LRUCache({
      max,
      dispose: (letter, _key, reason) => {
        if (reason === 'evict') onDropped(letter)
      },
    })
  }

  get size(): number {
    return this.#letters.size
  }

  add(letter: DeadEvent): void {
    this.#letters.set(letter.key, letter)
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadEvent[] {
    // The cache iterates from the most recent. Nothing below counts as use, so that is the newest.
    return [...this.#letters.values()].slice(offset, offset + limit)
  }

  get(key: string): DeadEvent | undefined {
    return this.#letters.peek(key)
  }

  replay(key: string): boolean {
    const letter = this.#letters.peek(key)
    if (letter === undefined) return false
    this.#replay(letter)
    return this.#letters.delete(key)
  }

  discard(key: string): boolean {
    return this.#letters.delete(key)
  }
}
