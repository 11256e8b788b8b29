import type { ReadableInbox } from '../reading.ts'

/** The number of replayed events by what became of them. */
export interface ReplayOutcome {
  readonly handled: number
  /** Dead letters again. */
  readonly dead: number
  /** No longer known: discarded, or handled in an inbox that forgets what it has handled. */
  readonly gone: number
  /** Waiting, running or retrying, or not asked for yet. */
  readonly open: number
}

/** Follows replayed events, however many: an event that has ended is not asked for again. */
export class ReplayedEvents {
  readonly #inbox: Pick<ReadableInbox, 'events'>
  readonly #ended = { handled: 0, dead: 0, gone: 0 }
  readonly #open = new Set<string>()
  #counting: Promise<void> | undefined

  constructor(inbox: Pick<ReadableInbox, 'events'>) {
    this.#inbox = inbox
  }

  add(key: string): void {
    this.#open.add(key)
  }

  /** Asks for open events, the oldest first, for about `forMs`, and counts all. */
  async count(forMs: number): Promise<ReplayOutcome> {
    this.#counting ??= this.#ask(performance.now() + forMs).finally(() => {
      this.#counting = undefined
    })
    await this.#counting
    return { ...this.#ended, open: this.#open.size }
  }

  async #ask(until: number): Promise<void> {
    for (const key of [...this.#open]) {
      const record = await this.#inbox.events?.get(key)
      const state = record?.state ?? 'gone'
      if (state === 'handled' || state === 'dead' || state === 'gone') {
        this.#ended[state]++
        this.#open.delete(key)
      } else {
        // The next time, those that were not asked for come first.
        this.#open.delete(key)
        this.#open.add(key)
      }
      if (performance.now() > until) return
    }
  }
}
