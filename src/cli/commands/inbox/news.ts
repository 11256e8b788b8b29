import type { DeadLetter, EventRecord, EventState, FailedAttempt, InspectedInbox } from '../../../inbox/reading.ts'
import { type InboxCounts, readCounts } from './stats.ts'

export interface FailedRun {
  readonly event: EventRecord
  readonly attempt: FailedAttempt
}

/** Counts, and what happened since the last check. */
export interface News {
  readonly counts: InboxCounts
  /** In order of time. */
  readonly failures: readonly FailedRun[]
  /** In order of time. */
  readonly deadLetters: readonly DeadLetter[]
}

/** Newest events checked per state, and newest dead letters. */
const checkedPerState = 100

/** Where an event with a fresh failure can be. Dead ones are among the dead letters. */
const failing: readonly EventState[] = ['retrying', 'waiting', 'running', 'handled']

/** Reads what is new since the last call. The first call reports nothing. */
export class NewsReader {
  readonly #inbox: InspectedInbox
  #failures: Seen<FailedRun> | undefined
  #deadLetters: Seen<DeadLetter> | undefined

  constructor(inbox: InspectedInbox) {
    this.#inbox = inbox
  }

  async read(): Promise<News> {
    const { deadLetters, events } = this.#inbox
    const failures: FailedRun[] = []
    for (const state of failing.filter((each) => events.states.includes(each))) {
      const page = await events.list({ state, limit: checkedPerState })
      for (const event of page.events) for (const attempt of event.failedAttempts) failures.push({ event, attempt })
    }
    const died = await deadLetters.list({ limit: checkedPerState })
    const isFirst = this.#failures === undefined
    this.#failures ??= new Seen(({ event, attempt }) => `${+attempt.failedAt} ${attempt.number} ${event.key}`)
    this.#deadLetters ??= new Seen(({ key, diedAt }) => `${+diedAt} ${key}`)
    const news = {
      failures: this.#failures.unseen(failures, ({ attempt }) => attempt.failedAt),
      deadLetters: this.#deadLetters.unseen(died, ({ diedAt }) => diedAt),
    }
    const counts = await readCounts(this.#inbox)
    return isFirst ? { counts, failures: [], deadLetters: [] } : { counts, ...news }
  }
}

class Seen<Item> {
  readonly #idOf: (item: Item) => string
  #ids: ReadonlySet<string> = new Set()
  #newest = Number.NEGATIVE_INFINITY

  constructor(idOf: (item: Item) => string) {
    this.#idOf = idOf
  }

  /** Returns the new items, oldest first. */
  unseen(items: readonly Item[], timeOf: (item: Item) => Date): readonly Item[] {
    const ids = new Map(items.map((item) => [this.#idOf(item), item]))
    const found = [...ids].flatMap(([id, item]) => (this.#isNew(id, timeOf(item)) ? [item] : []))
    this.#ids = new Set(ids.keys())
    for (const item of items) this.#newest = Math.max(this.#newest, timeOf(item).getTime())
    return found.sort((a, b) => timeOf(a).getTime() - timeOf(b).getTime())
  }

  /** Old items can resurface when newer ones end. Server clocks differ by less than 10 s. */
  #isNew(id: string, at: Date): boolean {
    return !this.#ids.has(id) && at.getTime() > this.#newest - 10_000
  }
}
