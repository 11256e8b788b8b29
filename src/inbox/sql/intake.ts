import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { outage } from '../../internal/storage/outage.ts'
import { later, sleep, type Timer, unref } from '../../internal/timers.ts'
import type { Acceptance, AcceptedEvent, ExpectationChanges, InboxHost } from '../inbox.ts'
import { ByteLimit, bytesOf } from './batch-reader.ts'
import type { Database, NewEvent, StoredChanges, StoredExpectation } from './database.ts'
import { writeHead } from './head.ts'

/** Maximum events per step. Their bytes are limited too. */
const maxBatch = 500

/** Maximum events waiting for the database. They stay in memory even if it hangs. */
const maxWaiting = 5_000

/** Steps in flight. While one waits for the disk, the next is prepared. */
const maxInFlight = 2

/** Delay before events are sent again while the database is unreachable (ms). */
const retryDelayMs = 50

/** An event on its way to the database. */
class PendingEvent {
  readonly event: NewEvent
  readonly bytes: number
  readonly stored: Promise<Acceptance>
  hasEnded = false
  problem: unknown
  #resolve!: (acceptance: Acceptance) => void
  #reject!: (error: unknown) => void
  readonly #timer: Timer | undefined

  constructor(event: NewEvent, timeoutMs: number | undefined) {
    this.event = event
    this.bytes = bytesOf(event.event) * (1 + (event.changes?.begins.length ?? 0))
    this.stored = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    if (timeoutMs === undefined) return
    // The event may be stored anyway; then its next delivery is a duplicate.
    this.#timer = setTimeout(() => this.fail(unavailable(this.problem)), timeoutMs)
    unref(this.#timer)
  }

  end(acceptance: Acceptance): void {
    this.#ended()
    this.#resolve(acceptance)
  }

  fail(error: unknown): void {
    this.#ended()
    this.#reject(error)
  }

  #ended(): void {
    this.hasEnded = true
    clearTimeout(this.#timer)
  }
}

const overloaded = (): WebhookError => new WebhookError('overloaded', 'too many events wait for the database')

const unavailable = (cause: unknown): WebhookError =>
  cause instanceof WebhookError ? cause : outage('the database of the inbox', cause)

export interface IntakeOptions {
  readonly database: Pick<Database, 'run' | 'steps' | 'failure'>
  readonly host: Pick<InboxHost, 'measured'>
  /** How long an event may wait for an unreachable database (ms). Absent: as long as a step takes. */
  readonly timeoutMs?: number | undefined
  /** Called when there may be new events. */
  readonly stored: () => void
}

/** Group commit: events of the same moment share a step, and so a commit and a wait for the disk. */
export class Intake {
  readonly #options: IntakeOptions
  readonly #limit = new ByteLimit()
  /** Events not stored yet, by key hash. */
  readonly #entries = new Map<string, PendingEvent>()
  #waiting: PendingEvent[] = []
  #inFlight = 0
  #isScheduled = false
  #onIdle: (() => void) | undefined

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /** @throws WebhookError `overloaded`; rejects with `unavailable` after `timeoutMs` */
  add(event: NewEvent): Promise<Acceptance> {
    const first = this.#entries.get(event.hash)
    // The first may not be stored yet.
    if (first !== undefined)
      return first.stored.then((acceptance) => (acceptance === 'accepted' ? 'duplicate' : acceptance))
    if (this.#entries.size >= maxWaiting) throw overloaded()
    const entry = new PendingEvent(event, this.#options.timeoutMs)
    this.#entries.set(event.hash, entry)
    this.#waiting.push(entry)
    this.#schedule()
    return entry.stored.finally(() => this.#ended(entry))
  }

  /**
   * Stores events of different keys in a step of their own: all, or none.
   * @throws as {@link add}
   */
  async addAll(events: readonly NewEvent[]): Promise<readonly Acceptance[]> {
    // What is on its way may be one of them.
    for (let first = this.#sent(events); first !== undefined; first = this.#sent(events))
      await first.stored.catch(() => {})
    if (this.#entries.size + events.length > maxWaiting) throw overloaded()
    const entries = events.map((event) => new PendingEvent(event, this.#options.timeoutMs))
    for (const entry of entries) this.#entries.set(entry.event.hash, entry)
    void this.#storeTogether(entries)
    return Promise.all(entries.map((entry) => entry.stored.finally(() => this.#ended(entry))))
  }

  #sent(events: readonly NewEvent[]): PendingEvent | undefined {
    const event = events.find(({ hash }) => this.#entries.has(hash))
    return event && this.#entries.get(event.hash)
  }

  async #storeTogether(entries: readonly PendingEvent[]): Promise<void> {
    const { database, timeoutMs } = this.#options
    while (!entries.every(({ hasEnded }) => hasEnded)) {
      try {
        return await this.#store(entries, true)
      } catch (error) {
        const isFinal = timeoutMs === undefined || database.failure(error) === undefined
        for (const entry of entries) {
          entry.problem = error
          if (isFinal) entry.fail(unavailable(error))
        }
        await sleep(retryDelayMs)
      }
    }
  }

  #ended({ event }: PendingEvent): void {
    this.#entries.delete(event.hash)
    if (this.#entries.size === 0) this.#onIdle?.()
  }

  /** Sends a batch at the end of the turn, with all events of the turn. */
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= maxInFlight) return
    later(() => {
      this.#isScheduled = false
      void this.#sendBatch()
    })
    this.#isScheduled = true
  }

  /** Sends what waits, in this call. */
  flush(): void {
    void this.#sendBatch()
  }

  async #sendBatch(): Promise<void> {
    const entries = this.#nextBatch()
    if (entries.length === 0) return
    this.#inFlight++
    // The next batch doesn't wait for this answer.
    if (this.#waiting.length > 0) this.#schedule()
    try {
      await this.#store(entries)
    } catch (error) {
      const { database } = this.#options
      const failure = database.failure(error)
      if (failure === 'timeout') this.#limit.exceeded(entries.reduce((sum, { bytes }) => sum + bytes, 0))
      if (failure !== undefined) await this.#requeue(entries, error)
      else if (entries.length > 1) await this.#storeEach(entries)
      else entries[0]?.fail(unavailable(error))
    } finally {
      this.#inFlight--
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  /** Stores events one by one after the database rejected their batch: one of them may be the reason. */
  async #storeEach(entries: readonly PendingEvent[]): Promise<void> {
    for (const entry of entries) {
      if (entry.hasEnded) continue
      try {
        await this.#store([entry])
      } catch (error) {
        if (this.#options.database.failure(error) !== undefined) await this.#requeue([entry], error)
        else entry.fail(unavailable(error))
      }
    }
  }

  async #store(entries: readonly PendingEvent[], isWhole = false): Promise<void> {
    const { database, host, stored } = this.#options
    const events = entries.map(({ event }) => event)
    const step = database.steps.accept(events, isWhole)
    const answer = measure(host.measured, 'accept', () => database.run(step))
    // Where one process writes, the claim that follows shares the commit.
    const isShared = database.steps.shared !== undefined
    if (!isShared) stored()
    const answers = await answer
    // If the first answer was lost, a stored event now counts as known, but nobody has heard of it.
    const isNew = answers.includes('accepted') || entries.some(({ problem }) => problem !== undefined)
    if (isShared && isNew) stored()
    for (const [index, entry] of entries.entries()) entry.end(answers[index] as Acceptance)
  }

  /** Takes the next batch from the queue. Drops events that have timed out. */
  #nextBatch(): readonly PendingEvent[] {
    const alive = this.#waiting.filter(({ hasEnded }) => !hasEnded)
    const count = Math.min(
      this.#limit.fitting(alive, ({ bytes }) => bytes),
      maxBatch,
    )
    this.#waiting = alive.splice(count)
    return alive
  }

  async #requeue(entries: readonly PendingEvent[], error: unknown): Promise<void> {
    for (const entry of entries) entry.problem = error
    if (this.#options.timeoutMs === undefined) for (const entry of entries) entry.fail(unavailable(error))
    else this.#waiting.unshift(...entries)
    await sleep(retryDelayMs)
  }

  /** Resolves once every event is stored or rejected. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#entries.size === 0) resolve()
      else this.#onIdle = resolve
    })
  }
}

type Hashing = Pick<Database, 'hashKey' | 'hashMedia'>

/**
 * Writes an event as the database stores it. Serialised per event: a payload without JSON, such as a BigInt, fails only its
 * own delivery.
 */
export function makeNewEvent(
  { hashKey, hashMedia }: Hashing,
  { event, receivedAt, trace }: AcceptedEvent,
  owed: readonly string[] | undefined,
  changes: StoredChanges | undefined,
): NewEvent {
  return {
    hash: hashKey(event.key),
    media: hashMedia(event.mediaId),
    event: JSON.stringify(event),
    head: writeHead(event),
    trace: trace && JSON.stringify(trace),
    receivedAt: receivedAt.getTime(),
    owed: owed && JSON.stringify(owed),
    changes,
  }
}

/**
 * Writes an event with the changes that it makes.
 * @param owed `undefined` if no handler matches
 */
export function toNewEvent(
  database: Hashing,
  { expectations, handlersOf }: Pick<InboxHost, 'expectations' | 'handlersOf'>,
  accepted: AcceptedEvent,
  owed: readonly string[] | undefined,
): NewEvent {
  const begun = expectations?.(accepted)
  const changes = begun && storedChanges(database, accepted, begun, handlersOf)
  return makeNewEvent(database, accepted, owed, changes)
}

/** Writes the changes that an event makes, with the handlers that each overdue event would owe. */
export function storedChanges(
  hashing: Hashing,
  { event }: AcceptedEvent,
  { at, begins, ends }: ExpectationChanges,
  handlersOf: InboxHost['handlersOf'],
): StoredChanges {
  const hashSubject = (rule: string) => hashing.hashKey(JSON.stringify([rule, event.mediaId]))
  const begun = begins.map(({ rule, dueAt, overdue }): StoredExpectation => {
    const owed = handlersOf(overdue.event)
    const { changes: _, receivedAt: __, ...stored } = makeNewEvent(hashing, overdue, owed, undefined)
    return {
      ...stored,
      owed: JSON.stringify(owed),
      subject: hashSubject(rule),
      rule: JSON.stringify(rule),
      beganAt: at.getTime(),
      dueAt: dueAt.getTime(),
    }
  })
  return { at: at.getTime(), begins: begun, ends: ends.map(hashSubject) }
}
