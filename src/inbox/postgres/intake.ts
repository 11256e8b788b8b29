import { WebhookError } from '../../errors.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { AcceptedEvent } from '../inbox.ts'
import { ByteLimit, bytesOf, isTimeout } from '../sql/batch-reader.ts'
import type { NewEvent, OwedExpectationChanges } from '../sql/store.ts'
import { writing } from './claim/committed-mark.ts'
import { type Database, isUnreachable, unreachable } from './database.ts'
import { withChanges } from './expectation-changes.ts'
import { hashKey, hashMedia } from './keys.ts'
import { type Parameter, parameter } from './literals.ts'
import { literal } from './schema.ts'

/** Maximum events per statement. Their bytes are limited too. */
const maxBatch = 500

/** Maximum events waiting for Postgres. They stay in memory even if it hangs. */
const maxWaiting = 5_000

/** Statements in flight. While one waits for the disk, the next is prepared. */
const maxBatchesInFlight = 2

/** Delay before events are sent again while Postgres is unreachable (ms). */
const retryDelayMs = 50

/** An event on its way to the database. */
class PendingEvent {
  readonly accepted: AcceptedEvent
  /** JSON array with the names of the handlers it owes. */
  readonly owed: string
  readonly bytes: number
  /** Serialised per event: a payload without JSON, such as a BigInt, fails only its own delivery. */
  readonly json: string
  readonly hash: string
  readonly changes: OwedExpectationChanges | undefined
  readonly stored: Promise<boolean>
  hasEnded = false
  problem: unknown
  #resolve!: (isNew: boolean) => void
  #reject!: (error: WebhookError) => void
  readonly #timer: Timer

  constructor({ accepted, owed, changes }: NewEvent, hash: string, timeoutMs: number) {
    this.accepted = accepted
    this.json = JSON.stringify(accepted.event)
    this.owed = JSON.stringify(owed)
    this.hash = hash
    this.changes = changes
    // Each expectation it begins stores an event of about the same size.
    this.bytes = bytesOf(this.json) * (1 + (changes?.begins.length ?? 0))
    this.stored = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // The event may be stored anyway; then its next delivery is a duplicate.
    this.#timer = setTimeout(() => this.fail(unreachable(this.problem)), timeoutMs)
    unref(this.#timer)
  }

  end(isNew: boolean): void {
    this.#ended()
    this.#resolve(isNew)
  }

  fail(error: WebhookError): void {
    this.#ended()
    this.#reject(error)
  }

  #ended(): void {
    this.hasEnded = true
    clearTimeout(this.#timer)
  }
}

/** Group commit: events of the same moment share a statement, and so a commit and a wait for the disk. */
export class Intake {
  readonly #database: Database
  readonly #timeoutMs: number
  readonly #limit = new ByteLimit()
  readonly #statement: string
  readonly #stored: () => void
  /** Events not stored yet, by key hash. */
  readonly #entries = new Map<string, PendingEvent>()
  #waiting: PendingEvent[] = []
  #batchesInFlight = 0
  #isScheduled = false
  #onIdle: (() => void) | undefined

  /** @param stored called when there may be new events */
  constructor(database: Database, timeoutMs: number, stored: () => void) {
    this.#database = database
    this.#stored = stored
    this.#timeoutMs = timeoutMs
    this.#statement = acceptStatement(database.schema)
  }

  /** Resolves with `false` for a known key. Throws `overloaded`, or rejects with `unavailable` after `timeoutMs`. */
  add(event: NewEvent): Promise<boolean> {
    const hash = hashKey(event.accepted.event.key)
    const first = this.#entries.get(hash)
    // The first may not be stored yet.
    if (first !== undefined) return first.stored.then(() => false)
    if (this.#entries.size >= maxWaiting) throw new WebhookError('overloaded', 'too many events wait for Postgres')
    const entry = new PendingEvent(event, hash, this.#timeoutMs)
    this.#entries.set(hash, entry)
    this.#waiting.push(entry)
    this.#schedule()
    return entry.stored.finally(() => this.#ended(entry))
  }

  #ended(entry: PendingEvent): void {
    this.#entries.delete(entry.hash)
    if (this.#entries.size === 0) this.#onIdle?.()
  }

  /** Sends a batch at the end of the turn, with all events of the turn. */
  #schedule(): void {
    if (this.#isScheduled || this.#batchesInFlight >= maxBatchesInFlight) return
    setImmediate(() => {
      this.#isScheduled = false
      void this.#sendBatch()
    })
    this.#isScheduled = true
  }

  async #sendBatch(): Promise<void> {
    const entries = this.#nextBatch()
    if (entries.length === 0) return
    this.#batchesInFlight++
    // The next batch doesn't wait for this answer.
    if (this.#waiting.length > 0) this.#schedule()
    try {
      this.#database.checkReady()
      const rows = await this.#database.measure('accept', () => this.#store(entries))
      const stored = new Set(rows.map(({ hash }) => hash.replaceAll('-', '')))
      // If the first answer was lost, a stored event now counts as known, but no process has heard of it.
      if (stored.size > 0 || entries.some(({ problem }) => problem !== undefined)) this.#stored()
      for (const entry of entries) entry.end(stored.has(entry.hash))
    } catch (error) {
      if (isTimeout(error)) this.#limit.exceeded(entries.reduce((sum, { bytes }) => sum + bytes, 0))
      if (isUnreachable(error)) await this.#requeue(entries, error)
      else if (entries.length > 1) await this.#storeEach(entries)
      else entries[0]?.fail(unreachable(error))
    } finally {
      this.#batchesInFlight--
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  /** Stores events one by one after Postgres rejected their batch: one of them may be the reason. */
  async #storeEach(entries: readonly PendingEvent[]): Promise<void> {
    for (const entry of entries) {
      if (entry.hasEnded) continue
      try {
        const rows = await this.#store([entry])
        if (rows.length > 0) this.#stored()
        entry.end(rows.length > 0)
      } catch (error) {
        if (isUnreachable(error)) await this.#requeue([entry], error)
        else entry.fail(unreachable(error))
      }
    }
  }

  async #store(entries: readonly PendingEvent[]): Promise<readonly StoredRow[]> {
    const { schema } = this.#database
    const values = columns(entries)
    const changing = entries.filter(hasChanges)
    // Prepared, because planning took half the time of a single event. The plan reads no table, so it stays good.
    if (changing.length === 0) return this.#database.accepting.query<StoredRow>(this.#statement, values, 'accept')
    const transaction = withChanges(schema, (...parts) => acceptStatement(schema, ...parts), values, changing)
    const [, rows] = await this.#database.accepting.batch(transaction)
    return rows as unknown as StoredRow[]
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
    this.#waiting.unshift(...entries)
    await new Promise((resolve) => setTimeout(resolve, retryDelayMs))
  }

  /** Resolves once every event is stored or rejected. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#entries.size === 0) resolve()
      else this.#onIdle = resolve
    })
  }
}

const hasChanges = (entry: PendingEvent): entry is PendingEvent & { readonly changes: OwedExpectationChanges } =>
  entry.changes !== undefined

interface StoredRow {
  readonly hash: string
}

const columns = (entries: readonly PendingEvent[]) => [
  entries.map(({ hash }) => hash),
  entries.map(({ accepted }) => hashMedia(accepted.event.mediaId)),
  entries.map(({ json }) => json),
  entries.map(({ accepted }) => accepted.receivedAt.getTime()),
  // Not null: with `array_nulls` off, Postgres reads NULL in an array as text.
  entries.map(({ accepted: { trace } }) => (trace === undefined ? '' : JSON.stringify(trace))),
  entries.map(({ owed }) => owed),
]

/**
 * Stores the events with new keys, in array order, and returns the hashes of these keys. Keys are inserted in hash
 * order, against deadlocks. `parts`: further WITH parts.
 */
const acceptStatement = (schema: string, value: Parameter = parameter, parts = ''): string => `
  WITH ${writing}, given AS MATERIALIZED (
    SELECT nextval(${literal(`${schema}.event_id`)}) AS id, hash, media, event, received, trace, owed
    FROM writing, unnest(${value(1)}::uuid[], ${value(2)}::bigint[], ${value(3)}::json[], ${value(4)}::float8[],
      ${value(5)}::text[], ${value(6)}::json[])
      AS given (hash, media, event, received, trace, owed)
  ), new AS (
    INSERT INTO ${schema}.key (hash, id) SELECT hash, id FROM given ORDER BY hash
    ON CONFLICT DO NOTHING RETURNING id, hash
  ), stored AS (
    INSERT INTO ${schema}.event (id, media, event, received_at, trace, owed)
    SELECT id, media, event, to_timestamp(received / 1000), nullif(trace, '')::json, owed FROM given JOIN new USING (id, hash)
  )${parts}
  SELECT hash::text FROM new`
