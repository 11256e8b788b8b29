import type { AcceptedEvent, HandlerName, InboxHost } from '../inbox.ts'

/** An event with this process, and the handlers that it owes. */
export interface OwingEvent {
  readonly accepted: AcceptedEvent
  /** The names of the handlers. `undefined`: an earlier version accepted the event. */
  readonly owed: readonly string[] | undefined
}

/** An attempt at such an event. */
export interface OwingAttempt {
  readonly completed: readonly string[]
  /** `true` if another process has some that this one lacks. */
  isPartial: boolean
  /** Those that no process has. */
  missing: readonly string[]
}

/** Writes handlers as a process publishes them, for `readLive` of the others. */
export const handlersJson = (handlers: readonly HandlerName[]): string =>
  JSON.stringify(handlers.map(({ name, types }) => ({ name, types })))

/** The time for which an event is left to the other processes, in ms: at first, and when it is old. */
const pauses = { least: 1_000, most: 5_000 }

/** Returns the time for which an event is left to the other processes, in ms. It grows with the age of the event. */
export const releaseForMs = ({ receivedAt }: AcceptedEvent): number =>
  Math.min(pauses.most, Math.max(pauses.least, (Date.now() - receivedAt.getTime()) / 10))

/**
 * Decides on handlers that an event owes and this process lacks, as in a rolling deploy: another process may have them.
 */
export class OwedHandlers {
  readonly #host: Pick<InboxHost, 'handlersOf' | 'logger'>
  readonly #leaseMs: number
  readonly #readLive: () => Promise<readonly (readonly HandlerName[])[]>
  readonly #skipped = new Map<string, number>()
  #renewedAt = Number.NEGATIVE_INFINITY
  #knowsOthersAt = 0
  #reading: Promise<readonly HandlerName[]> | undefined

  /** @param readLive reads the handlers of each process whose lease is not over */
  constructor(
    host: Pick<InboxHost, 'handlersOf' | 'logger'>,
    leaseMs: number,
    readLive: () => Promise<readonly (readonly HandlerName[])[]>,
  ) {
    this.#host = host
    this.#leaseMs = leaseMs
    this.#readLive = readLive
  }

  /**
   * Takes note that the lease of this process was begun or renewed. After a start or an outage, other processes may be about
   * to come back too: they have until the next time.
   */
  renewed(): void {
    const now = performance.now()
    if (this.#isLate(now)) this.#knowsOthersAt = now + this.#leaseMs / 3
    this.#renewedAt = now
  }

  #isLate(now: number): boolean {
    return now - this.#renewedAt > this.#leaseMs / 2
  }

  /** Decides whether an attempt is partial. `undefined`: it is not, since this process has every handler. */
  check(attempt: OwingAttempt, { accepted: { event }, owed }: OwingEvent): Promise<void> | undefined {
    const own = this.#host.handlersOf(event)
    const lacking = owed?.filter((name) => !own.includes(name) && !attempt.completed.includes(name))
    return lacking?.length ? this.#look(attempt, event.type, lacking) : undefined
  }

  async #look(attempt: OwingAttempt, type: string, lacking: readonly string[]): Promise<void> {
    // If the others cannot be asked, they may have them.
    const live = await this.#live().catch(() => undefined)
    const now = performance.now()
    const isUnsure = live === undefined || now < this.#knowsOthersAt || this.#isLate(now)
    const isLive = (name: string) =>
      live?.some((handler) => handler.name === name && (handler.types?.includes(type) ?? true))
    attempt.missing = isUnsure ? [] : lacking.filter((name) => !isLive(name))
    attempt.isPartial = attempt.missing.length < lacking.length
  }

  /** Reads the live handlers, for all who ask in this turn. A read that began earlier may not know who accepted an event. */
  #live(): Promise<readonly HandlerName[]> {
    this.#reading ??= Promise.resolve().then(async () => {
      this.#reading = undefined
      return (await this.#readLive()).flat()
    })
    return this.#reading
  }

  /** Warns of the handlers that an event ended without: of the first event, the tenth, the hundredth and so on. */
  ended({ missing }: OwingAttempt, { accepted }: Pick<OwingEvent, 'accepted'>): void {
    for (const handler of missing) {
      const events = (this.#skipped.get(handler) ?? 0) + 1
      this.#skipped.set(handler, events)
      if (/^10*$/.test(`${events}`))
        this.#host.logger.warn(
          { handler, events, key: accepted.event.key, type: accepted.event.type },
          `no process has the handler ${handler} any more: the event ended without it`,
        )
    }
  }
}
