// The event store that docs/add-a-database.md explains: SQLite behind libsql's asynchronous client, as Turso serves it. One
// process at a time has the database.

import { createHash } from 'node:crypto'
import { type Client, createClient, type InStatement, type InValue, type Row, type Transaction } from '@libsql/client'
import { WebhookError } from '../../../src/errors.ts'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { reviveEvent, reviveFailedAttempts } from '../../../src/inbox/engine/stored.ts'
import type { InboxDefinition, InboxHost, Transactional } from '../../../src/inbox/inbox.ts'
import type { ReplayParsing, Replays } from '../../../src/inbox/sql/dead-letters.ts'
import type { ClaimedEvent, HeldEvent } from '../../../src/inbox/sql/event.ts'
import type { EventReading } from '../../../src/inbox/sql/event-reading.ts'
import { writeHandled } from '../../../src/inbox/sql/handled-record.ts'
import { SqlInbox, withOwed } from '../../../src/inbox/sql/inbox.ts'
import type {
  ClaimRequest,
  ClaimResult,
  EventStore,
  NewEvent,
  Settled,
  StoreListener,
} from '../../../src/inbox/sql/store.ts'
import type { SqlTables } from '../../../src/inbox/sql/tables.ts'
import { unlessAborted } from '../../../src/internal/unless-aborted.ts'

/** An inbox in a database of libsql, such as one of Turso. */
export const libsqlInbox = (url: string): InboxDefinition<Transactional<Transaction>> =>
  defineInbox({
    name: 'libsqlInbox',
    storage: 'file',
    expects: true,
    ordersStrictly: true,
    limits: true,
    open: (host) => new SqlInbox(host, new LibsqlStore(host, url), { handles: true, concurrency: 16 }),
  })

const schema = [
  'CREATE TABLE IF NOT EXISTS key (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, accepted_at INTEGER NOT NULL)',
  `CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, media TEXT NOT NULL, event TEXT NOT NULL, trace TEXT,
     received_at INTEGER NOT NULL, since INTEGER NOT NULL, due_at INTEGER, held INTEGER NOT NULL DEFAULT 0,
     crashes INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, completed TEXT NOT NULL DEFAULT '[]', failed TEXT)`,
  'CREATE INDEX IF NOT EXISTS event_due ON event (due_at, id) WHERE due_at IS NOT NULL',
  'CREATE TABLE IF NOT EXISTS handled (id INTEGER PRIMARY KEY, record TEXT NOT NULL)',
  `CREATE TABLE IF NOT EXISTS dead_letter (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, event_id INTEGER UNIQUE,
     replay INTEGER NOT NULL DEFAULT 0, dead_letter TEXT NOT NULL, body BLOB)`,
  `CREATE TABLE IF NOT EXISTS expectation (subject TEXT NOT NULL, hash TEXT NOT NULL, rule TEXT NOT NULL,
     began_at INTEGER NOT NULL, due_at INTEGER NOT NULL, event TEXT NOT NULL)`,
  'CREATE TABLE IF NOT EXISTS expectation_end (subject TEXT PRIMARY KEY, ended_at INTEGER NOT NULL)',
  'CREATE TABLE IF NOT EXISTS operation (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, events TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS pause (handler TEXT PRIMARY KEY, since INTEGER NOT NULL, paused_by TEXT)',
  `CREATE TABLE IF NOT EXISTS activity (minute INTEGER, process TEXT, numbers TEXT NOT NULL, PRIMARY KEY (minute, process))`,
]

const hash = (text: string): string => createHash('sha256').update(JSON.stringify(text)).digest('hex')
const merge =
  'SELECT json_group_array(value) FROM (SELECT value FROM json_each(completed) UNION SELECT value FROM json_each(?))'

export class LibsqlStore implements EventStore {
  readonly claimSize = 64
  readonly readAhead = 200
  readonly maxUnrecorded = 64
  readonly pollMs = 1_000
  readonly isNotified = true
  readonly isQuiet = false
  readonly hasExpired = false
  readonly holds = true
  readonly reading: EventReading = {
    longestScan: { ms: 1_000 },
    isRetrying: 'due_at > $now',
    makeDue: 'due_at = $now',
  }
  readonly replays: Replays = { putBack, maxCommit: 100 }
  readonly replace: ReplayParsing['replace']
  readonly tables: SqlTables
  readonly #host: InboxHost
  readonly #client: Client
  #opening: Promise<void> | undefined
  #listener: StoreListener | undefined
  /** The last step: a local database takes one at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(host: InboxHost, url: string) {
    this.#host = host
    this.#client = createClient({ url, intMode: 'number' })
    this.tables = {
      hashKey: hash,
      hex: (column) => `hex(${column})`,
      ms: (column) => column,
      json: (value) => value,
      hashesIn: (array) => `SELECT value AS hash, key AS place FROM json_each(${array})`,
      read: async <Row>(sql: string, values: readonly InValue[] = []) => (await this.#run(named(sql, values))) as Row[],
      change: async (steps, signal) => {
        const results = await this.#batch(steps.map(({ sql, values }) => named(sql, values)))
        if (signal !== undefined) this.#listener?.heard(signal)
        return results
      },
    }
    this.replace = (key, parsed) =>
      this.#write(async (tx) => {
        const gone = await tx.execute({ sql: 'DELETE FROM dead_letter WHERE hash = ?', args: [hash(key)] })
        if (gone.rowsAffected === 0) return false
        const changes = host.expectations?.(parsed)
        const owing = changes && withOwed(changes, host.handlersOf)
        const id = await store(tx, { accepted: parsed, owed: [], changes: owing })
        return id ?? true
      })
  }

  #step<T>(run: () => Promise<T>): Promise<T> {
    const step = this.#last.then(run)
    this.#last = step.catch(() => {})
    return step
  }

  #run(statement: InStatement): Promise<Row[]> {
    return this.#step(async () => (await this.#client.execute(statement)).rows)
  }

  /** Runs statements in one transaction. Resolves with the number of rows that each has changed. */
  #batch(statements: InStatement[]): Promise<number[]> {
    return this.#step(async () =>
      (await this.#client.batch(statements, 'write')).map(({ rowsAffected }) => rowsAffected),
    )
  }

  #write<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#step(async () => {
      const tx = await this.#client.transaction('write')
      try {
        const result = await run(tx)
        await tx.commit()
        return result
      } finally {
        tx.close()
      }
    })
  }

  // What an earlier process still held, it was running: it has crashed.
  open(opened: (tables: SqlTables) => Promise<void>): void {
    const takeOver = 'UPDATE event SET crashes = crashes + 1, held = 0 WHERE held'
    this.#opening = this.#batch([...schema, takeOver]).then(() => opened(this.tables))
    this.#opening.catch((error) => this.#host.logger.error({ err: error }, 'the database cannot be opened'))
  }

  async ready(): Promise<void> {
    await this.#opening?.catch((cause) => {
      throw new WebhookError('unavailable', 'libsqlInbox: the database cannot be opened', { cause })
    })
  }

  async begin(listener: StoreListener): Promise<void> {
    this.#listener = listener
  }

  async accept(event: NewEvent): Promise<boolean> {
    await this.ready()
    const id = await this.#write((tx) => store(tx, event))
    if (id !== undefined) this.#listener?.stored()
    return id !== undefined
  }

  async accepted(): Promise<void> {
    await this.#last
  }

  async acceptDue(): Promise<number> {
    const now = Date.now()
    const [next, stored] = await this.#write(async (tx) => {
      const due = await tx.execute({
        sql: 'DELETE FROM expectation WHERE due_at <= ? RETURNING event, due_at',
        args: [now],
      })
      for (const { event, due_at: dueAt } of due.rows) {
        const accepted = { event: reviveEvent(JSON.parse(event as string)), receivedAt: new Date(dueAt as number) }
        await store(tx, { accepted, owed: [], changes: undefined })
      }
      const { rows } = await tx.execute('SELECT min(due_at) AS next FROM expectation')
      return [rows[0]?.['next'] as number | null, due.rows.length] as const
    })
    if (stored > 0) this.#listener?.stored()
    return next === null ? Number.POSITIVE_INFINITY : Math.max(0, next - now)
  }

  async claim(ask: () => ClaimRequest): Promise<ClaimResult> {
    const now = Date.now()
    const { limit, withSuspect } = ask()
    const isFree = `held = 0 AND (due_at IS NULL OR due_at <= ${now})`
    const before = (condition: string) =>
      `NOT EXISTS (SELECT 1 FROM event e WHERE e.media = event.media AND e.id < event.id AND e.held = 0 AND e.due_at IS NULL ${condition})`
    const take = (where: string) =>
      `UPDATE event SET held = 1, since = coalesce(due_at, since), due_at = NULL WHERE id IN (SELECT id FROM event WHERE ${where}) RETURNING *`
    const rows = await this.#write(async (tx) => {
      const healthy = `${isFree} AND crashes = 0 AND ${before('AND e.crashes > 0')} ORDER BY due_at IS NULL, id LIMIT ${limit}`
      const found = [...(await tx.execute(take(healthy))).rows]
      const suspect = `${isFree} AND crashes > 0 AND ${before('')} ORDER BY crashes, id LIMIT 1`
      if (withSuspect) found.push(...(await tx.execute(take(suspect))).rows)
      const { rows: next } = await tx.execute('SELECT min(due_at) AS next FROM event WHERE due_at IS NOT NULL')
      return { found, next: next[0]?.['next'] as number | null }
    })
    return {
      events: rows.found.map(toClaimed).sort((a, b) => Number(a.id) - Number(b.id)),
      hasMore: rows.found.length >= limit,
      nextInMs: rows.next === null ? Number.POSITIVE_INFINITY : Math.max(0, rows.next - now),
    }
  }

  // Every claim reads the table from its start.
  widenNextClaim(): void {}

  async keepOnly(held: readonly HeldEvent[]): Promise<void> {
    const ids = JSON.stringify(held.map(({ id }) => id))
    await this.#run({
      sql: 'UPDATE event SET held = 0 WHERE held AND id NOT IN (SELECT value FROM json_each(?))',
      args: [ids],
    })
  }

  async settle(end: Settled): Promise<boolean> {
    const [{ changed } = { changed: 0 }] = (await this.#batch(statementsOf(end))).map((rows) => ({ changed: rows }))
    return changed > 0
  }

  async transact<Result>(...[{ job }, { handler, signal }, run]: Parameters<EventStore['transact']>): Promise<Result> {
    return this.#write(async (tx) => {
      signal.throwIfAborted()
      const { rowsAffected } = await tx.execute({
        sql: `UPDATE event SET completed = json_insert(completed, '$[#]', ?1) WHERE id = ?2 AND held
              AND NOT EXISTS (SELECT 1 FROM json_each(completed) WHERE value = ?1)`,
        args: [handler, job.id],
      })
      if (rowsAffected === 0) throw new WebhookError('lease_lost', 'the event has ended, or its handler has completed')
      return (await unlessAborted(signal, run(tx as never))) as Result
    })
  }

  async end(): Promise<void> {
    await this.#run('UPDATE event SET held = 0 WHERE held')
  }

  async expire(): Promise<number> {
    const before = Date.now() - 86_400_000
    await this.#batch([
      {
        sql: "DELETE FROM handled WHERE json_extract(record, '$[3]') + json_extract(record, '$[4]') < ?",
        args: [before],
      },
      {
        sql: `DELETE FROM key WHERE accepted_at < ? AND NOT EXISTS (SELECT 1 FROM event WHERE event.id = key.id)
              AND NOT EXISTS (SELECT 1 FROM handled WHERE handled.id = key.id)
              AND NOT EXISTS (SELECT 1 FROM dead_letter WHERE event_id = key.id)`,
        args: [before],
      },
      { sql: 'DELETE FROM expectation_end WHERE ended_at < ?', args: [before] },
    ])
    return 60_000
  }

  isTransient(error: unknown): boolean {
    return /SQLITE_BUSY|HRANA|fetch/.test(`${(error as { code?: string }).code}`)
  }

  async close(): Promise<void> {
    await this.#last
    this.#client.close()
  }
}

/** Puts the time, the names of tables and the places of values in a statement of the inbox. */
const named = (sql: string, values: readonly InValue[]): InStatement => ({
  sql: sql
    .replaceAll('$now', `${Date.now()}`)
    .replaceAll(/\$(\d+)/g, '?$1')
    .replaceAll(/\$([a-z]\w*)/g, '$1'),
  args: [...values],
})

/** Stores an event, and returns its id. `undefined`: its key is known. */
async function store(tx: Transaction, { accepted, changes }: NewEvent): Promise<number | undefined> {
  const { event, receivedAt, trace } = accepted
  const key = await tx.execute({
    sql: 'INSERT INTO key (hash, accepted_at) VALUES (?, ?) ON CONFLICT DO NOTHING',
    args: [hash(event.key), Date.now()],
  })
  if (key.rowsAffected === 0) return undefined
  const at = receivedAt.getTime()
  await tx.execute({
    sql: 'INSERT INTO event (id, media, event, trace, received_at, since) VALUES (?, ?, ?, ?, ?, ?)',
    args: [
      key.lastInsertRowid as bigint,
      event.mediaId,
      JSON.stringify(event),
      trace ? JSON.stringify(trace) : null,
      at,
      at,
    ],
  })
  const subjectOf = (rule: string) => hash(JSON.stringify([rule, event.mediaId]))
  const time = changes?.at.getTime() ?? 0
  for (const rule of changes?.ends ?? []) {
    const args = [subjectOf(rule), time]
    await tx.execute({ sql: 'DELETE FROM expectation WHERE subject = ? AND began_at <= ?', args })
    const sql =
      'INSERT INTO expectation_end VALUES (?, ?) ON CONFLICT (subject) DO UPDATE SET ended_at = max(ended_at, excluded.ended_at)'
    await tx.execute({ sql, args })
  }
  for (const { rule, dueAt, overdue } of changes?.begins ?? [])
    await tx.execute({
      sql: `INSERT INTO expectation SELECT ?1, ?2, ?3, ?4, ?5, ?6
            WHERE NOT EXISTS (SELECT 1 FROM expectation_end WHERE subject = ?1 AND ended_at >= ?4)`,
      args: [
        subjectOf(rule),
        hash(overdue.event.key),
        JSON.stringify(rule),
        time,
        dueAt.getTime(),
        JSON.stringify(overdue.event),
      ],
    })
  return Number(key.lastInsertRowid)
}

/** The statements that record an end. The first one changes a row if this process still has the event. */
function statementsOf(end: Settled): InStatement[] {
  const id = end.job.id
  if (end.kind === 'handled')
    return [
      { sql: 'DELETE FROM event WHERE id = ? AND held', args: [id] },
      {
        sql: 'INSERT INTO handled SELECT ?, ? WHERE changes() = 1',
        args: [id, writeHandled(end.job, end.handlers)],
      },
    ]
  const completed = JSON.stringify(end.completed)
  if (end.kind === 'progress')
    return [{ sql: `UPDATE event SET completed = (${merge}) WHERE id = ?`, args: [completed, id] }]
  if (end.kind === 'dead')
    return [
      { sql: `UPDATE event SET completed = (${merge}) WHERE id = ? AND held`, args: [completed, id] },
      {
        sql: `INSERT INTO dead_letter (hash, event_id, dead_letter)
              SELECT ?, id, '{"completed":' || completed || ',"letter":' || ? || '}' FROM event WHERE id = ? AND held`,
        args: [hash(end.job.key), end.letter, id],
      },
      { sql: 'DELETE FROM event WHERE id = ? AND held', args: [id] },
    ]
  const isRetry = end.kind === 'retry'
  return [
    {
      sql: `UPDATE event SET held = 0, due_at = ?, completed = (${merge}), attempts = attempts + ?, failed = coalesce(?, failed),
              crashes = crashes * ? WHERE id = ? AND held`,
      args: [
        Math.ceil(Date.now() + end.delayMs),
        completed,
        isRetry ? end.counts : 0,
        (isRetry && end.failed) || null,
        isRetry ? 0 : 1,
        id,
      ],
    },
  ]
}

function putBack(...[{ id }, { event, receivedAt, trace, completed, failedAttempts }]: Parameters<Replays['putBack']>) {
  const now = Date.now()
  return {
    sql: `INSERT INTO $event (id, media, event, trace, received_at, since, due_at, completed, failed)
      SELECT event_id, $2, $3, $4, $5, $6, $6, $7, $8 FROM $dead_letter WHERE id = $1`,
    values: [
      id,
      event.mediaId,
      JSON.stringify(event),
      trace ? JSON.stringify(trace) : null,
      receivedAt.getTime(),
      now,
      JSON.stringify(completed),
      failedAttempts ? JSON.stringify(failedAttempts) : null,
    ],
  }
}

function toClaimed(row: Row): ClaimedEvent {
  const text = (name: string) => row[name] as string | null
  return {
    id: row['id'] as number,
    releases: 0,
    crashes: row['crashes'] as number,
    accepted: {
      event: reviveEvent(JSON.parse(text('event') as string)),
      receivedAt: new Date(row['received_at'] as number),
      ...(text('trace') !== null && { trace: JSON.parse(text('trace') as string) }),
    },
    attempts: row['attempts'] as number,
    completed: JSON.parse(text('completed') as string),
    failedAttempts: reviveFailedAttempts(JSON.parse(text('failed') ?? '[]')),
    since: row['since'] as number,
    size: (text('event') as string).length,
  }
}
