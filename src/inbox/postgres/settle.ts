import { sleep, unref } from '../../internal/timers.ts'
import type { JobAttempt } from '../engine/job.ts'
import { hasEnded, isRelease, type OwedHandlers } from '../engine/owed-handlers.ts'
import { cutOff, type DeadResult, maxCrashes, type RetryResult, type Settling } from '../engine/settling.ts'
import type { InboxHost } from '../inbox.ts'
import { writeLetter } from '../sql/dead-letter-row.ts'
import { ByteLimit, bytesOf, isTimeout } from '../sql/piece.ts'
import { awaitedMark, awaitedNames, publishedNames } from './awaited.ts'
import { isHeldSince, released } from './claimed.ts'
import { type Database, isUnreachable } from './database.ts'
import { handledRecord } from './event-row.ts'
import type { PostgresJob } from './job.ts'
import { hashKey } from './keys.ts'
import { literal } from './schema.ts'
import type { Tables } from './tables.ts'

/** The pause before records are written again, in ms, after Postgres could not write them. */
const pauseMs = 100

/** Maximum pause before a record that Postgres refuses is written again, in ms. */
const longestPauseMs = 10_000

type SettlingHost = Pick<InboxHost, 'logger' | 'handlersOf' | 'handlers'>

type Kind = 'complete' | 'retry' | 'release' | 'deadLetter' | 'progress'

/** A record that has to be written. `values` are the values of its row. */
interface PendingRecord {
  readonly kind: Kind
  readonly job: PostgresJob
  readonly values: readonly unknown[]
  readonly written: () => void
  /** `true` once it was sent and the answer was lost. */
  readonly isRepeated?: boolean
  /** The number of times that Postgres has refused it alone. */
  readonly failures?: number
}

/** The order in which records are written: progress before the end of the same event. */
const kinds: readonly Kind[] = ['progress', 'complete', 'retry', 'release', 'deadLetter']

/**
 * Records in the database the outcome of claimed events. The records that are ready at the same time share a statement.
 * Only the process that has an event can write about it. While Postgres is unreachable the records wait.
 */
export class PostgresSettling implements Settling<PostgresJob> {
  readonly retries = 'anywhere'
  readonly #database: Database
  readonly #host: SettlingHost
  readonly #owed: OwedHandlers
  readonly #statements: Readonly<Record<Kind, string>>
  readonly #limit = new ByteLimit()
  #entries: PendingRecord[] = []
  #writing: Promise<void> | undefined
  /** The number of records that wait, because Postgres has refused them. */
  #delayed = 0

  /** @param ttlMs the time for which keys are remembered (ms) */
  constructor(database: Database, host: SettlingHost, owed: OwedHandlers, ttlMs: number) {
    this.#database = database
    this.#host = host
    this.#owed = owed
    this.#statements = statements(database, ttlMs)
  }

  begin(attempt: JobAttempt<PostgresJob>): Promise<DeadResult | undefined> | undefined {
    const { job } = attempt
    if (job.crashes >= maxCrashes) return Promise.resolve(cutOff(job, this.#host.logger))
    return this.#owed.check(attempt, job)
  }

  complete(attempt: JobAttempt<PostgresJob>, recorded: () => void): void {
    const { job } = attempt
    this.#owed.ended(attempt, job)
    const record = JSON.stringify(handledRecord(job, this.#host.handlersOf(job.accepted.event)))
    this.#add({ kind: 'complete', job, values: [record], written: recorded })
  }

  retry(attempt: JobAttempt<PostgresJob>, retry: RetryResult, recorded: () => void): void {
    const { job } = attempt
    const { delayMs, completed, failures, counts } = retry
    if (isRelease(retry)) {
      const values = [delayMs, storable(completed), this.#awaits(attempt, completed)]
      return this.#add({ kind: 'release', job, values, written: recorded })
    }
    const failed = failures.length === 0 ? null : JSON.stringify(job.failedWith(failures))
    const values = [delayMs, storable(completed), failed, Number(counts !== false)]
    this.#add({ kind: 'retry', job, values, written: recorded })
  }

  /** The handlers of other processes that an event has to wait for. None if this one has still handlers to run, once resumed. */
  #awaits(attempt: JobAttempt<PostgresJob>, completed: readonly string[]): string[] {
    const { job, missing } = attempt
    const { event } = job.accepted
    const isLeft = (name: string) => !hasEnded({ completed, failures: attempt.failures }, name)
    const own = this.#host.handlersOf(event)
    if (own.some(isLeft)) return []
    const awaited = (job.owed ?? []).filter((name) => isLeft(name) && !missing.includes(name))
    return awaitedNames(awaited, event.type, publishedNames(this.#host.handlers()))
  }

  deadLetter(job: PostgresJob, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, accepted, number: attempts } = job
    const failedAttempts = job.failedWith(failures)
    const deadLetter = { ...accepted, key, attempts, completed, failures, failedAttempts, diedAt: new Date() }
    const values = [hashKey(key), storable(completed), writeLetter(deadLetter)]
    this.#add({ kind: 'deadLetter', job, values, written: recorded })
  }

  progress(job: PostgresJob, completed: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      this.#add({ kind: 'progress', job, values: [storable(completed)], written: resolve })
    })
  }

  #add(entry: PendingRecord): void {
    this.#entries.push(entry)
    this.#writing ??= this.#write()
  }

  /** Writes until nothing is left. The first records wait for the end of the turn, so that others join them. */
  async #write(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#entries.length > 0) {
      const entries = this.#entries
      this.#entries = []
      for (const kind of kinds)
        await this.#writeAll(
          kind,
          entries.filter((entry) => entry.kind === kind),
        )
    }
    this.#writing = undefined
  }

  async #writeAll(kind: Kind, entries: readonly PendingRecord[]): Promise<void> {
    for (let left = entries; left.length > 0; ) {
      const count = this.#limit.fitting(left, ({ values }) => bytesOf(values))
      await this.#writePiece(kind, left.slice(0, count))
      left = left.slice(count)
    }
  }

  async #writePiece(kind: Kind, entries: readonly PendingRecord[]): Promise<void> {
    try {
      const values = kind === 'complete' ? columns(entries) : [rows(entries)]
      const answer = await this.#database.measure('record', () =>
        this.#database.query<{ id: string }>(this.#statements[kind], values),
      )
      const written = new Set(answer.map(({ id }) => id))
      for (const { job, written: report, isRepeated } of entries) {
        // Another process has the event now, unless the record was already written.
        if (!written.has(job.id) && !isRepeated && !job.hasEnded)
          this.#host.logger.warn({ key: job.key }, 'the lease of an event was lost before its result was recorded')
        report()
      }
    } catch (error) {
      await this.#failed(kind, entries, error)
    }
  }

  /** Writes the records again one by one, so that one that always fails holds up no other. */
  async #failed(kind: Kind, entries: readonly PendingRecord[], error: unknown): Promise<void> {
    if (!isUnreachable(error)) {
      if (entries.length > 1) {
        for (const entry of entries) await this.#writePiece(kind, [entry])
        return
      }
      this.#host.logger.error(
        { err: error, key: entries[0]?.job.key },
        'the inbox could not record the result of events',
      )
      return this.#later(entries[0] as PendingRecord)
    }
    if (isTimeout(error)) this.#limit.exceeded(entries.reduce((sum, { values }) => sum + bytesOf(values), 0))
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    for (const entry of entries) this.#again(entry)
  }

  /** Waits longer each time, beside the other records. */
  #later(entry: PendingRecord): void {
    const { failures = 0 } = entry
    this.#delayed++
    const timer = setTimeout(
      () => {
        this.#delayed--
        this.#again({ ...entry, failures: failures + 1 })
        this.#writing ??= this.#write()
      },
      Math.min(pauseMs * 2 ** failures, longestPauseMs),
    )
    unref(timer)
  }

  /** Keeps only the records of events that this process still has. */
  #again(entry: PendingRecord): void {
    if (entry.job.hasEnded) entry.written()
    else this.#entries.push({ ...entry, isRepeated: true })
  }

  /** Resolves once every record is written, or given up because its job has ended. */
  async settle(): Promise<void> {
    while (this.#writing !== undefined || this.#delayed > 0) await (this.#writing ?? sleep(pauseMs))
  }
}

const rows = (entries: readonly PendingRecord[]): string =>
  JSON.stringify(entries.map(({ job, values }) => [job.id, job.releases, ...values]))

const columns = (entries: readonly PendingRecord[]): unknown[] => [
  entries.map(({ job }) => job.id),
  entries.map(({ job }) => job.releases),
  entries.map(({ values }) => values[0]),
]

// Postgres stores no NUL in a text.
const storable = (names: readonly string[]): string[] => names.map((name) => name.replaceAll('\0', ''))

/**
 * The statements. Their parameter is a JSON array of rows: the id of the event, the number of its releases, and the
 * values. Each statement returns the ids of the events that the process still had. The names of completed handlers are
 * added to those that a transaction has recorded. Some JSON may have characters that Postgres cannot store as text. It is a
 * JSON string in its row. The id of a handled event can only exist already if the sequence began again, as after a failover
 * to a logical replica.
 *
 * `complete` runs for every event, and takes an array of each column instead. With rows, Postgres reads the JSON again
 * for each value, and this statement took about 17 % longer.
 *
 * `release` is for an event some of whose handlers other processes have, or are paused. One that awaits handlers is due once
 * it is too old, or else after the delay. Its crashes stay counted.
 */
function statements({ schema, channel }: Pick<Tables, 'schema' | 'channel'>, ttlMs: number): Record<Kind, string> {
  const given = `(SELECT (row ->> 0)::bigint AS id, row FROM json_array_elements($1::json) AS row)`
  const union = (row: string) => `ARRAY(
    SELECT unnest(completed) UNION SELECT name FROM json_array_elements_text(${row}) AS name)`
  const own = `event.id = given.id AND ${isHeldSince('(row ->> 1)::int')}`
  const later = `clock_timestamp() + (row ->> 2)::float8 * interval '1 ms'`
  return {
    progress: `
      UPDATE ${schema}.event SET completed = ${union('row -> 2')} FROM ${given} given WHERE ${own}
      RETURNING event.id::text`,
    complete: `
      WITH gone AS (
        DELETE FROM ${schema}.event USING unnest($1::bigint[], $2::integer[], $3::json[]) AS given (id, releases, record)
        WHERE event.id = given.id AND ${isHeldSince('given.releases')} RETURNING event.id, media, record
      ), handled AS (
        INSERT INTO ${schema}.handled (id, media, record) SELECT id, media, record FROM gone
        ON CONFLICT (id) DO UPDATE SET media = excluded.media, record = excluded.record
      )
      SELECT id::text FROM gone`,
    retry: `
      UPDATE ${schema}.event SET ${released}, due_at = ${later}, delayed_at = clock_timestamp(), crashes = 0,
        attempts = attempts + (row ->> 5)::int, completed = ${union('row -> 3')}, failed = coalesce((row ->> 4)::json, failed)
      FROM ${given} given WHERE ${own} RETURNING event.id::text`,
    release: `
      WITH freed AS (
        UPDATE ${schema}.event SET ${released}, completed = ${union('row -> 3')}, delayed_at = clock_timestamp(),
          due_at = greatest(${later}, CASE WHEN json_array_length(row -> 4) > 0
            THEN received_at + ${ttlMs} * interval '1 ms' END),
          awaits = nullif(ARRAY(SELECT json_array_elements_text(row -> 4)), '{}')
        FROM ${given} given WHERE ${own} RETURNING event.id
      )
      SELECT id::text, (SELECT pg_notify(${literal(channel)}, '${awaitedMark}')) FROM freed`,
    deadLetter: `
      WITH gone AS (
        DELETE FROM ${schema}.event USING ${given} given WHERE ${own}
        RETURNING event.id, media, owed, releases, ${union('row -> 3')} AS completed, row
      ), moved AS (
        INSERT INTO ${schema}.dead_letter (hash, event_id, media, dead_letter)
        SELECT (row ->> 2)::uuid, id, media, json_build_object('completed', completed, 'letter', (row ->> 4)::json,
          'owed', owed, 'releases', releases + 1)
        FROM gone
      )
      SELECT id::text FROM gone`,
  }
}
