import { throttled } from '../../internal/logger.ts'
import type { AcceptedEvent, AttemptResult, HandlerName, InboxHost } from '../inbox.ts'
import type { HandlerFailure } from '../reading.ts'
import type { DeadResult } from './attempts.ts'

export interface OwingEvent {
  readonly accepted: AcceptedEvent
  /** `undefined` if its unreadable delivery was parsed when no handler matched. */
  readonly owed: readonly string[] | undefined
}

export interface OwingAttempt {
  readonly completed: readonly string[]
  readonly failures?: readonly HandlerFailure[] | undefined
  /** `true` if the event still owes handlers that this process lacks. */
  lacksHandlers: boolean
  /** `true` if another process may have some of those; `false` if they are awaited after a crash. */
  isElsewhere: boolean
  /** Owed handlers that were removed for good. */
  missing: readonly string[]
}

/** The handlers of an inbox, as its processes publish them. */
export interface PublishedHandlers {
  readonly live: readonly (readonly HandlerName[])[]
  /**
   * Handlers whose last process closed cleanly or published without them. A crash removes none; publishing undoes it.
   */
  readonly removed: readonly string[]
}

/** Serializes handlers to publish: each starts with `{"name":` and its JSON name, for the storage to search. */
export const handlersJson = (handlers: readonly HandlerName[]): string =>
  JSON.stringify(handlers.map(({ name, types }) => ({ name, types })))

/** Longest release (ms): when another process has the handlers, and when they are paused. */
const maxRelease = { elsewhere: 5_000, paused: 60_000 }

/** Returns how long to release an event (ms): a tenth of its age, at least 1 s. */
export const releaseForMs = ({ receivedAt }: AcceptedEvent, isElsewhere: boolean): number =>
  Math.min(
    isElsewhere ? maxRelease.elsewhere : maxRelease.paused,
    Math.max(1_000, (Date.now() - receivedAt.getTime()) / 10),
  )

/** Returns `true` if handlers were skipped and none failed: the event is only released. */
export const isRelease = ({ failures, counts }: AttemptResult & { status: 'retry' }): boolean =>
  failures.length === 0 && counts === false

/**
 * Decides about owed handlers that this process lacks. In a rolling deploy another process may have them. After a crash
 * none may, until it restarts; so only a removal cancels an owed handler. An event that outlives its key becomes a dead
 * letter, whose replay can still run the handler.
 */
export class OwedHandlers {
  readonly #host: Pick<InboxHost, 'handlersOf' | 'logger'>
  readonly #ttlMs: number
  readonly #read: () => Promise<PublishedHandlers>
  readonly #skipped = new Map<string, number>()
  readonly #absent = new Set<string>()
  #reading: Promise<PublishedHandlers> | undefined

  /** @param ttlMs how long event keys are remembered (ms) */
  constructor(host: Pick<InboxHost, 'handlersOf' | 'logger'>, ttlMs: number, read: () => Promise<PublishedHandlers>) {
    this.#host = host
    this.#ttlMs = ttlMs
    this.#read = read
  }

  /**
   * Sets whether the attempt is partial. Returns `undefined` if this process has every handler. Resolves with a dead
   * result if no process came back with a handler in time.
   */
  check(attempt: OwingAttempt, { accepted, owed }: OwingEvent): Promise<DeadResult | undefined> | undefined {
    const own = this.#host.handlersOf(accepted.event)
    const lacking = owed?.filter((name) => !own.includes(name) && !willNotRunAgain(attempt, name))
    if (!lacking?.length) return undefined
    const isDone = own.every((name) => willNotRunAgain(attempt, name))
    return this.#checkPublished(attempt, accepted, lacking, isDone)
  }

  /** @param isDone `true` if this process has nothing left to run */
  async #checkPublished(
    attempt: OwingAttempt,
    accepted: AcceptedEvent,
    lacking: readonly string[],
    isDone: boolean,
  ): Promise<DeadResult | undefined> {
    attempt.lacksHandlers = attempt.isElsewhere = true
    // If the storage can't tell, assume that other processes have them.
    const published = await this.#published().catch(() => undefined)
    if (published === undefined) return undefined
    const { type } = accepted.event
    const live = published.live.flat()
    const absent = lacking.filter(
      (name) => !live.some((handler) => handler.name === name && (handler.types?.includes(type) ?? true)),
    )
    attempt.missing = absent.filter((name) => published.removed.includes(name))
    attempt.lacksHandlers = attempt.missing.length < lacking.length
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
    throttled(this.#host.logger).error(
      { handlers: awaited, key: event.key },
      `an event became a dead letter: ${message}`,
    )
    const ended = failures.filter(({ final }) => final)
    return { status: 'dead', completed, failures: [...ended, ...awaited.map((handler) => ({ handler, message }))] }
  }

  /** Reads the published handlers. Callers in one turn share a read; a cache could miss a process just started. */
  #published(): Promise<PublishedHandlers> {
    this.#reading ??= Promise.resolve().then(() => {
      this.#reading = undefined
      return this.#read()
    })
    return this.#reading
  }

  /** Warns once per absent handler that events wait for, and again if it comes back and goes. */
  #warnAbsent(awaited: readonly string[], lacking: readonly string[], { event: { key, type } }: AcceptedEvent): void {
    for (const handler of lacking) {
      if (!awaited.includes(handler)) this.#absent.delete(handler)
      else if (!this.#absent.has(handler)) {
        this.#absent.add(handler)
        this.#host.logger.warn(
          { handler, key, type },
          `no process has the handler ${handler} now, and events wait for it. Start one that has it. If it was removed ` +
            'after a crash, its events become dead letters once their keys expire',
        )
      }
    }
  }

  /** Warns about events that ended without a removed handler: the first, tenth, hundredth and so on. */
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

/** Returns `true` if the handler won't run again for the event. */
export const willNotRunAgain = (
  { completed, failures }: Pick<OwingAttempt, 'completed' | 'failures'>,
  name: string,
): boolean => completed.includes(name) || failures?.some(({ handler, final }) => final && handler === name) === true
