import type { JobAttempt } from '../engine/job.ts'
import { isRelease, type OwedHandlers } from '../engine/owed-handlers.ts'
import { cutOff, type DeadResult, maxCrashes, type RetryResult, type Settling } from '../engine/settling.ts'
import type { InboxHost } from '../inbox.ts'
import { isHeldBy, released } from './claimed.ts'
import { type Database, isUnreachable, type Tables } from './database.ts'
import { handledRecord } from './event-row.ts'
import type { PostgresJob } from './job.ts'
import { hashKey } from './keys.ts'
import { literal } from './schema.ts'

/** The pause before records are written again, in ms, after Postgres could not write them. */
const pauseMs = 100

type Kind = 'complete' | 'retry' | 'release' | 'deadLetter' | 'progress'

/** A record that has to be written. `values` are the values of its row. */
interface PendingRecord {
  readonly kind: Kind
  readonly job: PostgresJob
  readonly values: readonly unknown[]
  readonly written: () => void
  /** `true` once it was sent and the answer was lost. */
  readonly isRepeated?: boolean
}

/** The order in which records are written: progress before the end of the same event. */
const kinds: readonly Kind[] = ['progress', 'complete', 'retry', 'release', 'deadLetter']

/**
 * Records in the database the outcome of claimed events. The records that are ready at the same time share a statement.
 * Only the owner of an event can write about it. While Postgres is unreachable the records wait.
 */
export class PostgresSettling implements Settling<PostgresJob> {
  readonly retries = 'anywhere'
  readonly #database: Database
  readonly #host: Pick<InboxHost, 'logger' | 'handlersOf'>
  readonly #owed: OwedHandlers
  readonly #statements: Readonly<Record<Kind, string>>
  #entries: PendingRecord[] = []
  #writing: Promise<void> | undefined

  constructor(database: Database, host: Pick<InboxHost, 'logger' | 'handlersOf'>, owed: OwedHandlers) {
    this.#database = database
    this.#host = host
    this.#owed = owed
    this.#statements = statements(database)
  }

  begin(attempt: JobAttempt<PostgresJob>): Promise<DeadResult | undefined> | undefined {
    const { job } = attempt
    if (job.crashes >= maxCrashes) return Promise.resolve(cutOff(job, this.#host.logger))
    return this.#owed.check(attempt, job)?.then(() => undefined)
  }

  complete(attempt: JobAttempt<PostgresJob>, recorded: () => void): void {
    const { job } = attempt
    this.#owed.ended(attempt, job)
    const record = JSON.stringify(handledRecord(job, this.#host.handlersOf(job.accepted.event)))
    this.#add({ kind: 'complete', job, values: [record], written: recorded })
  }

  retry({ job }: JobAttempt<PostgresJob>, retry: RetryResult, recorded: () => void): void {
    const { delayMs, completed, failures, counts } = retry
    if (isRelease(retry))
      return this.#add({ kind: 'release', job, values: [delayMs, storable(completed)], written: recorded })
    const failed = failures.length === 0 ? null : JSON.stringify(job.failedWith(failures))
    const values = [delayMs, storable(completed), failed, Number(counts !== false)]
    this.#add({ kind: 'retry', job, values, written: recorded })
  }

  deadLetter(job: PostgresJob, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, number: attempts } = job
    const end = { key, attempts, failures, failedAttempts: job.failedWith(failures), diedAt: new Date() }
    const values = [hashKey(key), storable(completed), JSON.stringify(end)]
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
    if (entries.length === 0) return
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
      await this.#failed(entries, error)
    }
  }

  /** Keeps only the records of events that this process still has. */
  async #failed(entries: readonly PendingRecord[], error: unknown): Promise<void> {
    if (!isUnreachable(error))
      this.#host.logger.error({ err: error }, 'the inbox could not record the result of events')
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    for (const entry of entries) {
      if (entry.job.hasEnded) entry.written()
      else this.#entries.push({ ...entry, isRepeated: true })
    }
  }

  /** Resolves once every record is written, or given up because its job has ended. */
  async settle(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }
}

const rows = (entries: readonly PendingRecord[]): string =>
  JSON.stringify(entries.map(({ job, values }) => [job.id, job.owner, job.releases, ...values]))

const columns = (entries: readonly PendingRecord[]): unknown[] => [
  entries.map(({ job }) => job.id),
  entries.map(({ job }) => job.owner),
  entries.map(({ job }) => job.releases),
  entries.map(({ values }) => values[0]),
]

// Postgres stores no NUL in a text.
const storable = (names: readonly string[]): string[] => names.map((name) => name.replaceAll('\0', ''))

/**
 * The statements. Their parameter is a JSON array of rows: the id of the event, its owner, the number of its releases, and
 * the values. Each statement returns the ids of the events that the owner still had. The names of completed handlers are
 * added to those that a transaction has recorded. Some JSON may have characters that Postgres cannot store as text. It is a
 * JSON string in its row. The id of a handled event can only exist already if the sequence began again, as after a failover
 * to a logical replica.
 *
 * `complete` runs for every event, and takes an array of each column instead. With rows, Postgres reads the JSON again
 * for each value, and this statement took about 17 % longer.
 *
 * `release` is for an event some of whose handlers other processes have, or are paused. The other processes learn when it
 * is due. Its crashes stay counted.
 */
function statements({ schema, channel }: Pick<Tables, 'schema' | 'channel'>): Record<Kind, string> {
  const given = `(SELECT (row ->> 0)::bigint AS id, row FROM json_array_elements($1::json) AS row)`
  const union = (row: string) => `ARRAY(
    SELECT unnest(completed) UNION SELECT name FROM json_array_elements_text(${row}) AS name)`
  const own = `event.id = given.id AND ${isHeldBy('(row ->> 1)::uuid', '(row ->> 2)::int')}`
  const dueLater = `due_at = clock_timestamp() + (row ->> 3)::float8 * interval '1 ms'`
  return {
    progress: `
      UPDATE ${schema}.event SET completed = ${union('row -> 3')} FROM ${given} given WHERE ${own}
      RETURNING event.id::text`,
    complete: `
      WITH gone AS (
        DELETE FROM ${schema}.event USING unnest($1::bigint[], $2::uuid[], $3::integer[], $4::json[])
          AS given (id, owner, releases, record)
        WHERE event.id = given.id AND ${isHeldBy('given.owner', 'given.releases')} RETURNING event.id, media, record
      ), handled AS (
        INSERT INTO ${schema}.handled (id, media, record) SELECT id, media, record FROM gone
        ON CONFLICT (id) DO UPDATE SET media = excluded.media, record = excluded.record
      )
      SELECT id::text FROM gone`,
    retry: `
      UPDATE ${schema}.event SET ${released}, ${dueLater}, crashes = 0, attempts = attempts + (row ->> 6)::int,
        completed = ${union('row -> 4')}, failed = coalesce((row ->> 5)::json, failed)
      FROM ${given} given WHERE ${own} RETURNING event.id::text`,
    release: `
      WITH freed AS (
        UPDATE ${schema}.event SET ${released}, ${dueLater}, completed = ${union('row -> 4')}
        FROM ${given} given WHERE ${own} RETURNING event.id
      )
      SELECT id::text, (SELECT pg_notify(${literal(channel)}, '')) FROM freed`,
    deadLetter: `
      WITH gone AS (
        DELETE FROM ${schema}.event USING ${given} given WHERE ${own}
        RETURNING event.id, media, event, received_at, trace, owed, releases, ${union('row -> 4')} AS completed, row
      ), moved AS (
        INSERT INTO ${schema}.dead_letter (hash, event_id, media, dead_letter)
        SELECT (row ->> 3)::uuid, id, media, json_build_object('event', event, 'completed', completed,
          'receivedAt', extract(epoch FROM received_at) * 1000, 'trace', trace, 'owed', owed,
          'releases', releases + 1, 'end', (row ->> 5)::json)
        FROM gone
      )
      SELECT id::text FROM gone`,
  }
}
