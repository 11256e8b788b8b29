import { shared } from '../../internal/shared.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { InboxEvents, ReadableInbox } from '../reading.ts'

/**
 * Replayed events by outcome. `dead`: a dead letter again. `open`: waiting, running or retrying. `gone`: discarded,
 * handled and forgotten, or an unreadable delivery that is now an event.
 */
export type ReplayOutcome = Readonly<Record<'handled' | 'dead' | 'gone' | 'open', number>>

type SourceInbox = Pick<ReadableInbox, 'operations'> & { readonly events: InboxEvents }

/** Counts the outcomes of replayed events, and queries the inbox only for those still open. */
export class ReplayedEvents {
  readonly #inbox: SourceInbox
  readonly #startedAt = new Date()
  readonly #ended = { handled: 0, dead: 0, gone: 0 }
  /** Events the inbox no longer knows. A discard that is recorded later makes their outcome unknown. */
  #missing = 0
  readonly #open = new Set<string>()
  readonly #update = shared(() => this.#ask([...this.#open]))

  constructor(inbox: SourceInbox) {
    this.#inbox = inbox
  }

  add(key: string): void {
    this.#open.add(key)
  }

  /** Concurrent calls share one count. */
  async count(): Promise<ReplayOutcome> {
    await this.#update()
    const { handled, dead, gone } = this.#ended
    const open = this.#open.size
    return this.#missing > 0 && (await this.#missingWereHandled())
      ? { handled: handled + this.#missing, dead, gone, open }
      : { handled, dead, gone: gone + this.#missing, open }
  }

  async #ask(open: readonly string[]): Promise<void> {
    for (let start = 0; start < open.length; start += 1_000) {
      const keys = open.slice(start, start + 1_000)
      const outcomes = await this.#inbox.events.outcomes(keys)
      for (const [index, key] of keys.entries()) {
        const outcome = outcomes[index] ?? (key.startsWith('unreadable:') ? 'gone' : undefined)
        if (outcome === 'open') continue
        if (outcome === undefined) this.#missing++
        else this.#ended[outcome]++
        this.#open.delete(key)
      }
      await nextTurn()
    }
  }

  /** True if the inbox forgets handled events and nothing was discarded since: a missing event was then handled. */
  async #missingWereHandled(): Promise<boolean> {
    const { events, operations } = this.#inbox
    if (operations === undefined || events.states.includes('handled')) return false
    const newest = await operations.list()
    return !newest.some(({ act, at }) => act === 'discard' && at >= this.#startedAt)
  }
}
