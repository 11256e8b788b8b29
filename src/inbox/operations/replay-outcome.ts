import { nextTurn } from '../../internal/timers.ts'
import type { InboxEvents, ReadableInbox } from '../reading.ts'

/**
 * The number of replayed events by what became of them. `dead`: dead letters again. `open`: waiting, running or retrying.
 * `gone`: discarded, handled and forgotten, or an unreadable delivery, which became an event.
 */
export type ReplayOutcome = Readonly<Record<'handled' | 'dead' | 'gone' | 'open', number>>

type SourceInbox = Pick<ReadableInbox, 'operations'> & { readonly events: InboxEvents }

/** Counts what became of replayed events, however many. One that has ended is not asked for again. */
export class ReplayedEvents {
  readonly #inbox: SourceInbox
  readonly #startedAt = new Date()
  readonly #ended = { handled: 0, dead: 0, gone: 0 }
  readonly #open = new Set<string>()
  #counting: Promise<void> | undefined

  constructor(inbox: SourceInbox) {
    this.#inbox = inbox
  }

  add(key: string): void {
    this.#open.add(key)
  }

  /** Calls share the count in progress. */
  async count(): Promise<ReplayOutcome> {
    this.#counting ??= this.#update([...this.#open]).finally(() => {
      this.#counting = undefined
    })
    await this.#counting
    return { ...this.#ended, open: this.#open.size }
  }

  async #update(open: readonly string[]): Promise<void> {
    for (let start = 0; start < open.length; start += 1_000) {
      const keys = open.slice(start, start + 1_000)
      const outcomes = await this.#inbox.events.outcomes(keys)
      const ifMissing = outcomes.includes(undefined) && (await this.#missingWereHandled()) ? 'handled' : 'gone'
      for (const [index, key] of keys.entries()) {
        const outcome = outcomes[index] ?? (key.startsWith('unreadable:') ? 'gone' : ifMissing)
        if (outcome === 'open') continue
        this.#ended[outcome]++
        this.#open.delete(key)
      }
      await nextTurn()
    }
  }

  /** True if the inbox forgets what it has handled, and no event was discarded since: those that are gone were handled. */
  async #missingWereHandled(): Promise<boolean> {
    const { events, operations } = this.#inbox
    if (operations === undefined || events.states.includes('handled')) return false
    const newest = await operations.list()
    return !newest.some(({ act, at }) => act === 'discard' && at >= this.#startedAt)
  }
}
