import { WebhookError } from '../../errors.ts'
import { Deadlines, type Timed } from '../../internal/deadlines.ts'
import type { AcceptedEvent } from '../inbox.ts'
import { type Database, isUnreachable, type Parameter, parameter, unreachable } from './database.ts'
import { type Effects, withEffects } from './effects.ts'
import { hashKey, hashMedia } from './keys.ts'
import { literal } from './schema.ts'

/**
 * Limits of a statement: a number of events, and the length of their JSON. It ends with the event that reaches one of
 * them.
 */
const largestBatch = { events: 500, length: 1_000_000 }

/** Maximum number of events that wait for Postgres. They stay in memory even when it hangs. */
const maxWaiting = 5_000

/** The number of statements that run at a time. While one waits for the disk, the next one is prepared. */
const maxFlights = 2

/** The pause before events are sent again, in ms, while Postgres is unreachable. */
const pauseMs = 50

/** An event on its way to the database. */
class PendingEvent implements Timed {
  readonly startedAt = performance.now()
  readonly accepted: AcceptedEvent
  /** The JSON of the names of the handlers that it owes. */
  readonly owed: string
  readonly hash: string
  readonly effects: Effects | undefined
  readonly stored: Promise<boolean>
  earlier: Timed | undefined
  later: Timed | undefined
  hasEnded = false
  problem: unknown
  #resolve!: (isNew: boolean) => void
  #reject!: (error: WebhookError) => void

  constructor(accepted: AcceptedEvent, owed: readonly string[], hash: string, effects: Effects | undefined) {
    this.accepted = accepted
    this.owed = JSON.stringify(owed)
    this.hash = hash
    this.effects = effects
    this.stored = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  end(isNew: boolean): void {
    this.hasEnded = true
    this.#resolve(isNew)
  }

  fail(error: WebhookError): void {
    this.hasEnded = true
    this.#reject(error)
  }

  /** Its time is up. The event may be stored anyway. In that case its next delivery is a duplicate. */
  expire(): void {
    this.fail(unreachable(this.problem))
  }
}

/**
 * Stores events. Events of the same moment share a statement, and so one commit and one wait for the disk. While
 * Postgres is unreachable they wait up to `timeoutMs`.
 */
export class Intake {
  readonly #database: Database
  readonly #deadlines: Deadlines
  readonly #statement: string
  readonly #stored: () => void
  /** The events that are not stored yet, by the hash of their key. */
  readonly #entries = new Map<string, PendingEvent>()
  #waiting: PendingEvent[] = []
  #flights = 0
  #isScheduled = false
  #onIdle: (() => void) | undefined

  /** @param stored called when there may be new events */
  constructor(database: Database, timeoutMs: number, stored: () => void) {
    this.#database = database
    this.#stored = stored
    this.#deadlines = new Deadlines(timeoutMs)
    this.#statement = acceptStatement(database.schema)
  }

  /**
   * Stores an event. Resolves with `true` once it is stored, or with `false` if its key was known.
   * @param owed the names of the handlers that it owes
   * @param effects its effects on expectations, which are stored in the same commit
   * @throws WebhookError `overloaded`, or `unavailable` when Postgres cannot be reached in time
   */
  add(accepted: AcceptedEvent, owed: readonly string[], effects?: Effects): Promise<boolean> {
    const hash = hashKey(accepted.event.key)
    const first = this.#entries.get(hash)
    // The first one may not be stored yet.
    if (first !== undefined) return first.stored.then(() => false)
    if (this.#entries.size >= maxWaiting) throw new WebhookError('overloaded', 'too many events wait for Postgres')
    const entry = new PendingEvent(accepted, owed, hash, effects)
    this.#entries.set(hash, entry)
    this.#waiting.push(entry)
    this.#deadlines.add(entry)
    this.#schedule()
    return entry.stored.finally(() => this.#ended(entry))
  }

  #ended(entry: PendingEvent): void {
    this.#deadlines.remove(entry)
    this.#entries.delete(entry.hash)
    if (this.#entries.size === 0) this.#onIdle?.()
  }

  /** Starts a statement at the end of the turn, with all the events of the turn. */
  #schedule(): void {
    if (this.#isScheduled || this.#flights >= maxFlights) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      void this.#fly()
    })
  }

  async #fly(): Promise<void> {
    const { entries, events } = this.#cut()
    if (entries.length === 0) return
    this.#flights++
    // The next statement does not wait for the answer to this one.
    if (this.#waiting.length > 0) this.#schedule()
    try {
      this.#database.checkReady()
      const rows = await this.#database.measure('accept', () => this.#store(entries, events))
      const stored = new Set(rows.map(({ hash }) => hash.replaceAll('-', '')))
      // If the first answer was lost, the event is known now, but no process was told of it.
      if (stored.size > 0 || entries.some(({ problem }) => problem !== undefined)) this.#stored()
      for (const entry of entries) entry.end(stored.has(entry.hash))
    } catch (error) {
      await this.#failed(entries, error)
    } finally {
      this.#flights--
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  async #store(entries: readonly PendingEvent[], events: readonly string[]): Promise<readonly StoredRow[]> {
    const { schema } = this.#database
    const values = columns(entries, events)
    const effective = entries.filter(hasEffects)
    // It is prepared: for a single event, planning took half of its time. Its plan reads no table, so that it stays good.
    if (effective.length === 0) return this.#database.query<StoredRow>(this.#statement, values, 'accept')
    const transaction = withEffects(schema, (...parts) => acceptStatement(schema, ...parts), values, effective)
    const [, rows] = await this.#database.batch(transaction)
    return rows as unknown as StoredRow[]
  }

  /**
   * Removes the events of the next statement from the queue, with their JSON. It leaves out events whose time is up.
   */
  #cut(): { readonly entries: readonly PendingEvent[]; readonly events: readonly string[] } {
    const entries: PendingEvent[] = []
    const events: string[] = []
    let length = 0
    let end = 0
    for (; end < this.#waiting.length; end++) {
      if (entries.length === largestBatch.events || length >= largestBatch.length) break
      const entry = this.#waiting[end] as PendingEvent
      if (entry.hasEnded) continue
      const event = JSON.stringify(entry.accepted.event)
      entries.push(entry)
      events.push(event)
      length += event.length * (1 + (entry.effects?.begins.length ?? 0))
    }
    this.#waiting.splice(0, end)
    return { entries, events }
  }

  async #failed(entries: readonly PendingEvent[], error: unknown): Promise<void> {
    const waits = isUnreachable(error)
    for (const entry of entries) {
      entry.problem = error
      if (!waits && !entry.hasEnded) entry.fail(unreachable(error))
    }
    if (!waits) return
    this.#waiting.unshift(...entries)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }

  /** Resolves once every event is stored or rejected. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#entries.size === 0) resolve()
      else this.#onIdle = resolve
    })
  }
}

const hasEffects = (entry: PendingEvent): entry is PendingEvent & { readonly effects: Effects } =>
  entry.effects !== undefined

/** The row of an event that was new. */
interface StoredRow {
  readonly hash: string
}

const columns = (entries: readonly PendingEvent[], events: readonly string[]) => [
  entries.map(({ hash }) => hash),
  entries.map(({ accepted }) => hashMedia(accepted.event.mediaId)),
  events,
  entries.map(({ accepted }) => accepted.receivedAt.getTime()),
  entries.map(({ accepted: { trace } }) => trace && JSON.stringify(trace)),
  entries.map(({ owed }) => owed),
]

/**
 * Stores the events whose keys are new, in the order of the arrays, and returns the hashes of their keys. Keys are
 * inserted in the order of their hashes, so that two processes with the same keys cannot deadlock.
 * @param parts further parts of its WITH
 */
const acceptStatement = (schema: string, value: Parameter = parameter, parts = ''): string => `
  WITH given AS MATERIALIZED (
    SELECT nextval(${literal(`${schema}.event_id`)}) AS id, hash, media, event, received, trace, owed
    FROM unnest(${value(1)}::uuid[], ${value(2)}::bigint[], ${value(3)}::json[], ${value(4)}::float8[],
      ${value(5)}::json[], ${value(6)}::json[])
      AS given (hash, media, event, received, trace, owed)
  ), new AS (
    INSERT INTO ${schema}.key (hash, id) SELECT hash, id FROM given ORDER BY hash
    ON CONFLICT DO NOTHING RETURNING id, hash
  ), stored AS (
    INSERT INTO ${schema}.event (id, media, event, received_at, trace, owed)
    SELECT id, media, event, to_timestamp(received / 1000), trace, owed FROM given JOIN new USING (id, hash)
  )${parts}
  SELECT hash::text FROM new`
