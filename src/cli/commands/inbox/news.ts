import type { DeadLetter, EventRecord, EventState, FailedAttempt, InspectedInbox } from '../../../inbox/reading.ts'
import { countsOf, type InboxCounts } from './stats.ts'

/** An attempt that failed, and its event. */
export interface Failure {
  readonly event: EventRecord
  readonly attempt: FailedAttempt
}

/** The counts of an inbox, and what has happened in it since the last check. */
export interface News {
  readonly counts: InboxCounts
  /** In order of time. */
  readonly failures: readonly Failure[]
  /** In order of time. */
  readonly deadLetters: readonly DeadLetter[]
}

/** The number of events of each state, and of dead letters, that are checked: the newest. */
const checkedPerState = 100

/** The states of an event that has just failed. A dead letter is found among the dead letters. */
const failing: readonly EventState[] = ['retrying', 'waiting', 'running', 'handled']

/** Finds what is new in an inbox at each check. The first check finds nothing. */
export class NewsReader {
  readonly #inbox: InspectedInbox
  #failures: Seen<Failure> | undefined
  #deadLetters: Seen<DeadLetter> | undefined

  constructor(inbox: InspectedInbox) {
    this.#inbox = inbox
  }

  async read(): Promise<News> {
    const { deadLetters, events } = this.#inbox
    const failures: Failure[] = []
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
    const counts = await countsOf(this.#inbox)
    return isFirst ? { counts, failures: [], deadLetters: [] } : { counts, ...news }
  }
}

/** Remembers what the last check found. */
class Seen<Item> {
  readonly #idOf: (item: Item) => string
  #ids: ReadonlySet<string> = new Set()
  /** The newest time that was seen, in ms. */
  #newest = Number.NEGATIVE_INFINITY

  constructor(idOf: (item: Item) => string) {
    this.#idOf = idOf
  }

  /** Returns the items that were not there the last time, the oldest first. */
  unseen(items: readonly Item[], timeOf: (item: Item) => Date): readonly Item[] {
    const ids = new Map(items.map((item) => [this.#idOf(item), item]))
    const found = [...ids].flatMap(([id, item]) => (this.#isNew(id, timeOf(item)) ? [item] : []))
    this.#ids = new Set(ids.keys())
    for (const item of items) this.#newest = Math.max(this.#newest, timeOf(item).getTime())
    return found.sort((a, b) => timeOf(a).getTime() - timeOf(b).getTime())
  }

  /** An old item can appear when newer ones end. Clocks of servers differ by less than 10 s. */
  #isNew(id: string, at: Date): boolean {
    return !this.#ids.has(id) && at.getTime() > this.#newest - 10_000
  }
}
