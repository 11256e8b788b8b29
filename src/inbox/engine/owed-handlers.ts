import type { AcceptedEvent, AttemptResult, HandlerName, InboxHost } from '../inbox.ts'

/** An event in this process, and its owed handlers. */
export interface OwingEvent {
  readonly accepted: AcceptedEvent
  /** The names of the handlers. `undefined`: an earlier version accepted the event. */
  readonly owed: readonly string[] | undefined
}

/** An attempt at such an event. */
export interface OwingAttempt {
  readonly completed: readonly string[]
  /** `true` if another process has owed handlers that this one lacks. */
  isPartial: boolean
  /** The owed handlers that no process has. */
  missing: readonly string[]
}

/** Writes handlers as a process publishes them, for `readLive` of the others. */
export const handlersJson = (handlers: readonly HandlerName[]): string =>
  JSON.stringify(handlers.map(({ name, types }) => ({ name, types })))

/** Maximum time for which an event is released, in ms: if another process has its handlers, and if they are paused. */
const longestRelease = { elsewhere: 5_000, paused: 60_000 }

/** The first time for which an event is released to another process, in ms. Each further one is twice as long. */
const firstReleaseMs = 20

/**
 * Returns the time for which an event is released, in ms: a tenth of its age, and 1 s for a new one. If another process has
 * its handlers, this one may still get it again, and a few short releases let the other one get it soon.
 * @param releases the number of its earlier releases
 */
export function releaseForMs({ receivedAt }: AcceptedEvent, isElsewhere: boolean, releases = 0): number {
  const forMs = Math.max(1_000, (Date.now() - receivedAt.getTime()) / 10)
  if (!isElsewhere) return Math.min(longestRelease.paused, forMs)
  return Math.min(longestRelease.elsewhere, forMs, firstReleaseMs * 2 ** releases)
}

/** Returns `true` if an attempt left handlers out and none failed: the event is only released until the next one. */
export const isRelease = ({ failures, counts }: AttemptResult & { status: 'retry' }): boolean =>
  failures.length === 0 && counts === false

/**
 * Decides what to do if this process lacks handlers that an event owes. In a rolling deploy, another process may have
 * them.
 */
export class OwedHandlers {
  readonly #host: Pick<InboxHost, 'handlersOf' | 'logger'>
  readonly #leaseMs: number
  readonly #readLive: () => Promise<readonly (readonly HandlerName[])[]>
  readonly #skipped = new Map<string, number>()
  #renewedAt = Number.NEGATIVE_INFINITY
  #knowsOthersAt = 0
  #reading: Promise<readonly HandlerName[]> | undefined

  /** @param readLive reads the handlers of each process with a valid lease */
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
   * Records that this process began or renewed its lease. After a start or an outage, other processes may also be about
   * to come back. They have until the next renewal.
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
    // If the other processes cannot be asked, they may have the handlers.
    const live = await this.#live().catch(() => undefined)
    const now = performance.now()
    const isUnsure = live === undefined || now < this.#knowsOthersAt || this.#isLate(now)
    const isLive = (name: string) =>
      live?.some((handler) => handler.name === name && (handler.types?.includes(type) ?? true))
    attempt.missing = isUnsure ? [] : lacking.filter((name) => !isLive(name))
    attempt.isPartial = attempt.missing.length < lacking.length
  }

  /**
   * Reads the live handlers, once for all callers in this turn. An earlier read may lack the process that accepted an
   * event.
   */
  #live(): Promise<readonly HandlerName[]> {
    this.#reading ??= Promise.resolve().then(async () => {
      this.#reading = undefined
      return (await this.#readLive()).flat()
    })
    return this.#reading
  }

  /** Warns that an event ended without some handlers: for the first event, the tenth, the hundredth and so on. */
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
