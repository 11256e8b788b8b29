import type { InboxHost } from '../inbox.ts'
import { ByteLimit, bytesOf, isTimeout } from '../sql/batch-reader.ts'
import { writeHandled } from '../sql/handled-record.ts'
import type { Settled } from '../sql/store.ts'
import { awaitedMark, awaitedNames, publishedNames } from './claim/awaited.ts'
import { isHeldSince, released } from './claim/claimed.ts'
import { type Database, isUnreachable } from './database.ts'
import { hashKey } from './keys.ts'
import { literal } from './schema.ts'
import type { Tables } from './tables.ts'

type SettledKind = Settled['kind']

interface PendingRecord {
  readonly end: Settled
  /** Values of its row, after id and releases. */
  readonly values: readonly unknown[]
  readonly resolve: (isOurs: boolean) => void
  readonly reject: (error: unknown) => void
}

/** Write order: progress before the end of the same event. */
const kinds: readonly SettledKind[] = ['progress', 'handled', 'retry', 'release', 'dead']

/** Records how attempts ended. Ends that are ready together share a statement. */
export class PostgresRecords {
  readonly #database: Database
  readonly #handlers: InboxHost['handlers']
  readonly #statements: Readonly<Record<SettledKind, string>>
  readonly #limit = new ByteLimit()
  #entries: PendingRecord[] = []
  #writing: Promise<void> | undefined

  /** `handlers`: those of this process. `ttlMs`: how long keys are remembered. */
  constructor(database: Database, handlers: InboxHost['handlers'], ttlMs: number) {
    this.#database = database
    this.#handlers = handlers
    this.#statements = statements(database, ttlMs)
  }

  /** Resolves with `false` if another process holds the event, or the record is there already. */
  write(end: Settled): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#entries.push({ end, values: this.#valuesOf(end), resolve, reject })
      this.#writing ??= this.#write()
    })
  }

  #valuesOf(end: Settled): readonly unknown[] {
    const { job } = end
    if (end.kind === 'handled') return [writeHandled(job, end.handlers, job.accepted.trace)]
    const completed = storable(end.completed)
    if (end.kind === 'progress') return [completed]
    if (end.kind === 'dead') return [hashKey(job.key), completed, end.letter]
    if (end.kind === 'retry') return [end.delayMs, completed, end.failed ?? null, end.counts]
    const awaits = awaitedNames(end.awaits, job.accepted.event.type, publishedNames(this.#handlers()))
    return [end.delayMs, completed, awaits]
  }

  /** Writes until nothing is left. Starts at the end of the turn, so that more records join the first batch. */
  async #write(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#entries.length > 0) {
      const entries = this.#entries
      this.#entries = []
      for (const kind of kinds)
        await this.#writeAll(
          kind,
          entries.filter(({ end }) => end.kind === kind),
        )
    }
    this.#writing = undefined
  }

  async #writeAll(kind: SettledKind, entries: readonly PendingRecord[]): Promise<void> {
    for (let remaining = entries; remaining.length > 0; ) {
      const count = this.#limit.fitting(remaining, ({ values }) => bytesOf(values))
      await this.#writeBatch(kind, remaining.slice(0, count))
      remaining = remaining.slice(count)
    }
  }

  async #writeBatch(kind: SettledKind, entries: readonly PendingRecord[]): Promise<void> {
    try {
      const values = kind === 'handled' ? columns(entries) : [rows(entries)]
      const answer = await this.#database.measure('record', () =>
        this.#database.query<{ id: string }>(this.#statements[kind], values),
      )
      const written = new Set(answer.map(({ id }) => id))
      for (const { end, resolve } of entries) resolve(written.has(end.job.id as string))
    } catch (error) {
      if (isTimeout(error)) this.#limit.exceeded(entries.reduce((sum, { values }) => sum + bytesOf(values), 0))
      // One of them may be the reason. It must not hold up the others.
      if (entries.length > 1 && !isUnreachable(error))
        for (const entry of entries) await this.#writeBatch(kind, [entry])
      else for (const { reject } of entries) reject(error)
    }
  }
}

const rows = (entries: readonly PendingRecord[]): string =>
  JSON.stringify(entries.map(({ end: { job }, values }) => [job.id, job.releases, ...values]))

const columns = (entries: readonly PendingRecord[]): unknown[] => [
  entries.map(({ end }) => end.job.id),
  entries.map(({ end }) => end.job.releases),
  entries.map(({ values }) => values[0]),
]

// Postgres text can't hold NUL.
const storable = (names: readonly string[]): string[] => names.map((name) => name.replaceAll('\0', ''))

/**
 * The statements. `$1` is a JSON array of rows: event id, releases, values. Each returns the ids of events the process
 * still held. Completed handlers are merged with those that transactions recorded. JSON that Postgres may be unable to
 * store as text is a JSON string in its row. `handled` conflicts only after the sequence restarted, as after a failover
 * to a logical replica. It runs for every event, so it takes an array per column: Postgres would parse a row again for
 * each value.
 * `release`: some handlers are paused, or in other processes only. It is due after the delay, but if it awaits
 * handlers, not before it is too old. Its crashes stay counted.
 */
function statements(
  { schema, channel }: Pick<Tables, 'schema' | 'channel'>,
  ttlMs: number,
): Record<SettledKind, string> {
  const given = `(SELECT (row ->> 0)::bigint AS id, row FROM json_array_elements($1::json) AS row)`
  const union = (row: string) => `ARRAY(
    SELECT unnest(completed) UNION SELECT name FROM json_array_elements_text(${row}) AS name)`
  const isOwned = `event.id = given.id AND ${isHeldSince('(row ->> 1)::int')}`
  const later = `clock_timestamp() + (row ->> 2)::float8 * interval '1 ms'`
  return {
    progress: `
      UPDATE ${schema}.event SET completed = ${union('row -> 2')} FROM ${given} given WHERE ${isOwned}
      RETURNING event.id::text`,
    handled: `
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
      FROM ${given} given WHERE ${isOwned} RETURNING event.id::text`,
    release: `
      WITH freed AS (
        UPDATE ${schema}.event SET ${released}, completed = ${union('row -> 3')}, delayed_at = clock_timestamp(),
          due_at = greatest(${later}, CASE WHEN json_array_length(row -> 4) > 0
            THEN received_at + ${ttlMs} * interval '1 ms' END),
          awaits = nullif(ARRAY(SELECT json_array_elements_text(row -> 4)), '{}')
        FROM ${given} given WHERE ${isOwned} RETURNING event.id
      )
      SELECT id::text, (SELECT pg_notify(${literal(channel)}, '${awaitedMark}')) FROM freed`,
    dead: `
      WITH gone AS (
        DELETE FROM ${schema}.event USING ${given} given WHERE ${isOwned}
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
