import type { AcceptedEvent, AttemptResult, HandlerName, InboxHost } from '../inbox.ts'
import type { HandlerFailure } from '../reading.ts'
import type { DeadResult } from './settling.ts'

/** An event in this process, and its owed handlers. */
export interface OwingEvent {
  readonly accepted: AcceptedEvent
  /** The names of the handlers. `undefined`: it had no handler when its unreadable delivery was parsed. */
  readonly owed: readonly string[] | undefined
}

/** An attempt at such an event. */
export interface OwingAttempt {
  readonly completed: readonly string[]
  readonly failures?: readonly HandlerFailure[] | undefined
  /** `true` if the event still owes handlers that this process lacks. */
  isPartial: boolean
  /** `true` if another process may have some of those. Otherwise they are awaited after a crash. */
  isElsewhere: boolean
  /** The owed handlers that were removed. */
  missing: readonly string[]
}

/** The handlers of an inbox, as its processes publish them. */
export interface PublishedHandlers {
  /** The handlers of each process with a valid lease. */
  readonly live: readonly (readonly HandlerName[])[]
  /**
   * The names of removed handlers: the last process that had one closed in order, or published its handlers without it. A
   * process that publishes one removes its name from this list. A crash adds none.
   */
  readonly removed: readonly string[]
}

/**
 * Writes handlers as a process publishes them. The text has `{"name":` and the name as JSON for each, so that storage can
 * find a name in it.
 */
export const handlersJson = (handlers: readonly HandlerName[]): string =>
  JSON.stringify(handlers.map(({ name, types }) => ({ name, types })))

/** Maximum time for which an event is released, in ms: if another process has its handlers, and if they are paused. */
const maxRelease = { elsewhere: 5_000, paused: 60_000 }

/** The first time for which an event is released to another process, in ms. Each further one is twice as long. */
const firstReleaseMs = 20

/**
 * Returns the time for which an event is released, in ms: a tenth of its age, and 1 s for a new one. If another process has
 * its handlers, this one may still get it again, and a few short releases let the other one get it soon.
 * @param releases the number of its earlier releases
 */
export function releaseForMs({ receivedAt }: AcceptedEvent, isElsewhere: boolean, releases = 0): number {
  const forMs = Math.max(1_000, (Date.now() - receivedAt.getTime()) / 10)
  if (!isElsewhere) return Math.min(maxRelease.paused, forMs)
  return Math.min(maxRelease.elsewhere, forMs, firstReleaseMs * 2 ** releases)
}

/** Returns `true` if an attempt left handlers out and none failed: the event is only released until the next one. */
export const isRelease = ({ failures, counts }: AttemptResult & { status: 'retry' }): boolean =>
  failures.length === 0 && counts === false

/**
 * Decides what to do if this process lacks handlers that an event owes. In a rolling deploy, another process may have
 * them. After a crash no process may have them until it is back: only a removal ends what an event owes. What is owed for
 * longer than keys are remembered becomes a dead letter, so that a replay can still run it.
 */
export class OwedHandlers {
  readonly #host: Pick<InboxHost, 'handlersOf' | 'logger'>
  readonly #ttlMs: number
  readonly #read: () => Promise<PublishedHandlers>
  readonly #skipped = new Map<string, number>()
  /** The handlers that no process has, since a crash, as far as that was logged. */
  readonly #absent = new Set<string>()
  #reading: Promise<PublishedHandlers> | undefined

  /** @param ttlMs the time for which keys are remembered (ms) */
  constructor(host: Pick<InboxHost, 'handlersOf' | 'logger'>, ttlMs: number, read: () => Promise<PublishedHandlers>) {
    this.#host = host
    this.#ttlMs = ttlMs
    this.#read = read
  }

  /**
   * Decides whether an attempt is partial. `undefined`: it is not, since this process has every handler. Resolves with a
   * dead result instead of an attempt if no process came back with a handler in time.
   */
  check(attempt: OwingAttempt, { accepted, owed }: OwingEvent): Promise<DeadResult | undefined> | undefined {
    const own = this.#host.handlersOf(accepted.event)
    const lacking = owed?.filter((name) => !own.includes(name) && !hasEnded(attempt, name))
    if (!lacking?.length) return undefined
    const isDone = own.every((name) => hasEnded(attempt, name))
    return this.#checkPublished(attempt, accepted, lacking, isDone)
  }

  /** @param isDone `true` if this process has nothing left to run */
  async #checkPublished(
    attempt: OwingAttempt,
    accepted: AcceptedEvent,
    lacking: readonly string[],
    isDone: boolean,
  ): Promise<DeadResult | undefined> {
    attempt.isPartial = attempt.isElsewhere = true
    // If the storage cannot be asked, other processes may have the handlers.
    const published = await this.#published().catch(() => undefined)
    if (published === undefined) return undefined
    const { type } = accepted.event
    const live = published.live.flat()
    const absent = lacking.filter(
      (name) => !live.some((handler) => handler.name === name && (handler.types?.includes(type) ?? true)),
    )
    attempt.missing = absent.filter((name) => published.removed.includes(name))
    attempt.isPartial = attempt.missing.length < lacking.length
    attempt.isElsewhere = absent.length < lacking.length
    const awaited = absent.filter((name) => !published.removed.includes(name))
    this.#warnAbsent(awaited, lacking, accepted)
    const isOverdue = !attempt.isElsewhere && this.#isTooOld(accepted)
    return isDone && awaited.length > 0 && isOverdue ? this.#deadLetter(attempt, awaited, accepted) : undefined
  }

  #isTooOld({ receivedAt }: AcceptedEvent): boolean {
    return Date.now() - receivedAt.getTime() > this.#ttlMs
  }

  #deadLetter(
    { completed, failures = [] }: OwingAttempt,
    awaited: readonly string[],
    { event }: AcceptedEvent,
  ): DeadResult {
    const message = 'no process has this handler; replay the event once one has'
    this.#host.logger.error({ handlers: awaited, key: event.key }, `an event became a dead letter: ${message}`)
    const ended = failures.filter(({ final }) => final)
    return { status: 'dead', completed, failures: [...ended, ...awaited.map((handler) => ({ handler, message }))] }
  }

  /** Reads the published handlers, once for all callers in this turn: an earlier read may lack the latest process. */
  #published(): Promise<PublishedHandlers> {
    this.#reading ??= Promise.resolve().then(() => {
      this.#reading = undefined
      return this.#read()
    })
    return this.#reading
  }

  /** Warns once of each handler that events wait for and no process has, until one has it. */
  #warnAbsent(awaited: readonly string[], lacking: readonly string[], { event: { key, type } }: AcceptedEvent): void {
    for (const handler of lacking) {
      if (!awaited.includes(handler)) this.#absent.delete(handler)
      else if (!this.#absent.has(handler)) {
        this.#absent.add(handler)
        this.#host.logger.warn(
          { handler, key, type },
          `no process has the handler ${handler} now, and events wait for it. Start a process that has it; if it was ` +
            'removed after a crash, such an event becomes a dead letter once its key expires',
        )
      }
    }
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

/** Returns `true` if a handler does not run again for the event. */
export const hasEnded = (
  { completed, failures }: Pick<OwingAttempt, 'completed' | 'failures'>,
  name: string,
): boolean => completed.includes(name) || failures?.some(({ handler, final }) => final && handler === name) === true
