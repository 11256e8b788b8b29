// The database that docs/add-a-database.md explains: SQLite behind libsql's asynchronous client, as Turso serves it. One
// process at a time has it.

import { createHash } from 'node:crypto'
import { type Client, createClient, type InValue, type ResultSet, type Transaction } from '@libsql/client'
import { WebhookError } from '../../../src/errors.ts'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import type { Acceptance, InboxDefinition, InboxHost, Transactional } from '../../../src/inbox/inbox.ts'
import type {
  ClaimedLane,
  Database,
  Dialect,
  NewEvent,
  SettledEvent,
  SettledLane,
  Statement,
  Statements,
  Step,
  StoredEvent,
  Value,
} from '../../../src/inbox/sql/database.ts'
import { SqlInbox } from '../../../src/inbox/sql/inbox.ts'
import { unlessAborted } from '../../../src/internal/unless-aborted.ts'

const ttlMs = 86_400_000

/** An inbox in a database of libsql, such as one of Turso. */
export const libsqlInbox = (url: string): InboxDefinition<Transactional<Transaction>> =>
  defineInbox({
    name: 'libsqlInbox',
    storage: 'file',
    expects: true,
    ordersStrictly: true,
    limits: true,
    open: (host) => new SqlInbox(host, new LibsqlDatabase(host, url), { handles: true, concurrency: 16, ttlMs }),
  })

const schema = [
  `CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, media TEXT, event TEXT, head TEXT,
     trace TEXT, body BLOB, replay INTEGER NOT NULL DEFAULT 0, received_at INTEGER NOT NULL, since INTEGER, owed TEXT,
     attempts INTEGER NOT NULL DEFAULT 0, completed TEXT NOT NULL DEFAULT '[]', failed TEXT,
     crashes INTEGER NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0, awaits TEXT, due_at INTEGER, ended_at INTEGER,
     died_at INTEGER)`,
  'CREATE INDEX IF NOT EXISTS event_lane ON event (media, id)',
  'CREATE INDEX IF NOT EXISTS event_due ON event (media, due_at) WHERE due_at IS NOT NULL',
  'CREATE INDEX IF NOT EXISTS event_died ON event (died_at, id) WHERE died_at IS NOT NULL',
  `CREATE TABLE IF NOT EXISTS lane (media TEXT PRIMARY KEY, owner TEXT, turn INTEGER NOT NULL DEFAULT 0, ready_at INTEGER,
     position INTEGER NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0, latest_at INTEGER)`,
  'CREATE INDEX IF NOT EXISTS lane_ready ON lane (ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL',
  'CREATE TABLE IF NOT EXISTS counter (next INTEGER NOT NULL)',
  'INSERT INTO counter SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM counter)',
  `CREATE TABLE IF NOT EXISTS expectation (hash TEXT PRIMARY KEY, subject TEXT NOT NULL, media TEXT NOT NULL,
     rule TEXT NOT NULL, began_at INTEGER NOT NULL, due_at INTEGER NOT NULL, event TEXT NOT NULL, head TEXT NOT NULL,
     trace TEXT, owed TEXT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS expectation_end (subject TEXT PRIMARY KEY, ended_at INTEGER NOT NULL,
     accepted_at INTEGER NOT NULL)`,
  'CREATE TABLE IF NOT EXISTS operation (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, events TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS pause (handler TEXT PRIMARY KEY, since INTEGER NOT NULL, paused_by TEXT)',
  'CREATE TABLE IF NOT EXISTS activity (minute INTEGER, process TEXT, numbers TEXT, PRIMARY KEY (minute, process))',
]

const hash = (text: string): string => createHash('sha256').update(JSON.stringify(text)).digest('hex')

/** A step: statements in a transaction of its own, which may run again. */
interface LibsqlStep<out Result> extends Step<Result> {
  run(tx: Transaction): Promise<Result>
}

const step = <Result>(run: (tx: Transaction) => Promise<Result>): LibsqlStep<Result> => ({ run })

const query = (tx: Transaction, sql: string, ...args: InValue[]): Promise<ResultSet> => tx.execute({ sql, args })

const dialect: Dialect = {
  ms: (column) => column,
  hex: (column) => `hex(${column})`,
  json: (value) => value,
  names: (column) => column,
  hashesIn: (array) => `SELECT value AS hash, key AS place FROM json_each(${array})`,
  isReady: 'ready_at IS NOT NULL',
}

async function nextId(tx: Transaction): Promise<number> {
  const { rows } = await query(tx, 'UPDATE counter SET next = next + 1 RETURNING next - 1 AS id')
  return rows[0]?.['id'] as number
}

const wake = (tx: Transaction, media: string, isStrict: boolean): Promise<unknown> =>
  query(
    tx,
    `INSERT INTO lane (media, ready_at) VALUES (?, ?) ON CONFLICT (media) DO UPDATE SET ready_at = excluded.ready_at
     WHERE ready_at IS NULL ${isStrict ? '' : 'OR ready_at > excluded.ready_at'}`,
    media,
    Date.now(),
  )

async function accept(
  tx: Transaction,
  event: NewEvent,
  isStrict: boolean,
  since: number | null = null,
): Promise<Acceptance> {
  const { hash: key, media, changes } = event
  const known = await query(tx, 'SELECT 1 FROM event WHERE hash = ?', key)
  if (known.rows.length > 0) return 'duplicate'
  const row = [key, media, event.event, event.head, event.trace ?? null, event.receivedAt, since, event.owed ?? null]
  const columns = 'id, hash, media, event, head, trace, received_at, since, owed'
  await query(tx, `INSERT INTO event (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, await nextId(tx), ...row)
  await wake(tx, media, isStrict)
  if (changes !== undefined) await applyChanges(tx, changes)
  return 'accepted'
}

async function applyChanges(tx: Transaction, { at, ends, begins }: NonNullable<NewEvent['changes']>): Promise<void> {
  for (const subject of ends) {
    await query(tx, 'DELETE FROM expectation WHERE subject = ? AND began_at <= ?', subject, at)
    const end = `INSERT INTO expectation_end VALUES (?, ?, ?) ON CONFLICT (subject)
      DO UPDATE SET ended_at = max(ended_at, excluded.ended_at), accepted_at = excluded.accepted_at`
    await query(tx, end, subject, at, Date.now())
  }
  for (const { hash: key, subject, media, rule, beganAt, dueAt, event, head, trace = null, owed } of begins) {
    const begin = `INSERT INTO expectation SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
      WHERE NOT EXISTS (SELECT 1 FROM expectation_end WHERE subject = ?2 AND ended_at >= ?5) ON CONFLICT DO NOTHING`
    await query(tx, begin, key, subject, media, rule, beganAt, dueAt, event, head, trace, owed)
  }
}

/** Most events of a lane that a claim reads. */
const maxEvents = 64

async function readLane(tx: Transaction, media: string, isStrict: boolean): Promise<ClaimedLane> {
  const now = Date.now()
  const { rows: lanes } = await query(tx, 'SELECT * FROM lane WHERE media = ?', media)
  const [lane] = lanes as unknown as [Record<'turn' | 'position' | 'crashes', number> & { latest_at: number | null }]
  const isDue = isStrict ? 'due_at IS NOT NULL' : 'due_at <= ?3'
  const isUntried = 'id > ?2 AND ended_at IS NULL AND died_at IS NULL AND due_at IS NULL'
  const sql = `SELECT * FROM event WHERE media = ?1 AND (${isDue} OR ${isUntried}) ORDER BY id LIMIT ${maxEvents + 1}`
  const { rows } = await query(tx, sql, media, lane.position, now)
  const { turn, position, crashes, latest_at: latestAt } = lane
  const events = rows.slice(0, maxEvents).map((row) => toEvent(row as never, now))
  const hasMore = rows.length > maxEvents
  return { media, turn, position, crashes, latestAt: latestAt ?? undefined, events, hasMore, awaits: false }
}

const toEvent = (
  row: StoredEvent & { received_at: number; since: number | null; due_at: number | null },
  now: number,
): StoredEvent => ({
  ...row,
  receivedAt: row.received_at,
  late: Boolean(row.late),
  since: row.due_at ?? row.since ?? row.received_at,
  isRetry: row.due_at !== null,
  dueInMs: Math.max(0, (row.due_at ?? 0) - now),
})

const union = `(SELECT json_group_array(value) FROM (SELECT value FROM json_each(completed) UNION SELECT value FROM json_each(?)))`

async function settleEvent(
  tx: Transaction,
  { id, kind, attempts, counts, delayMs, ...event }: SettledEvent,
): Promise<void> {
  const now = Date.now()
  const { completed, failed = null, late } = event
  const isTimed = kind === 'retry' || kind === 'release'
  const times = {
    ...(kind === 'end' && { ended_at: now, event: null }),
    ...(kind === 'dead' && { died_at: now }),
    ...(kind !== 'progress' && { due_at: isTimed ? Math.ceil(now + delayMs) : null }),
    ...(kind !== 'progress' && kind !== 'release' && { crashes: 0 }),
  }
  const set = Object.keys(times).map((name) => `, ${name} = ?`)
  await query(
    tx,
    `UPDATE event SET attempts = ?, completed = ${union}, failed = coalesce(?, failed), late = max(late, ?)${set.join('')}
     WHERE id = ? AND attempts = ? AND ended_at IS NULL AND died_at IS NULL`,
    ...[
      attempts,
      JSON.stringify(completed),
      failed,
      Number(late),
      ...Object.values(times),
      id,
      attempts - Number(counts),
    ],
  )
}

/** Records a lane. Returns the time until it is ready (ms). */
async function settleLane(tx: Transaction, { media, last, latestAt, clear, release }: SettledLane, isStrict: boolean) {
  const now = Date.now()
  const set = 'position = max(position, ?), latest_at = max(coalesce(latest_at, ?2), ?2), crashes = crashes * ?3'
  await query(
    tx,
    `UPDATE lane SET ${set.replace('?,', '?1,')} WHERE media = ?4`,
    last,
    latestAt ?? null,
    Number(!clear),
    media,
  )
  if (release === undefined) return Number.POSITIVE_INFINITY
  const due = `SELECT due_at FROM event WHERE media = ? AND due_at IS NOT NULL ORDER BY ${isStrict ? 'id' : 'due_at'} LIMIT 1`
  const dueAt = ((await query(tx, due, media)).rows[0]?.['due_at'] as number | undefined) ?? null
  const { ready_at: readyAt } = (await query(tx, 'SELECT ready_at FROM lane WHERE media = ?', media)).rows[0] as never
  const hasMore = release.hasMore || readyAt !== null
  const soon = hasMore && !(isStrict && dueAt !== null) ? now : dueAt
  const at = release.restMs === undefined ? soon : Math.ceil(now + release.restMs)
  await query(tx, 'UPDATE lane SET owner = NULL, ready_at = ? WHERE media = ?', at, media)
  return at === null ? Number.POSITIVE_INFINITY : Math.max(0, at - now)
}

const minOf = async (tx: Transaction, sql: string): Promise<number> => {
  const next = (await query(tx, sql)).rows[0]?.['next'] as number | null
  return next === null ? Number.POSITIVE_INFINITY : Math.max(0, next - Date.now())
}

const isHeld = 'EXISTS (SELECT 1 FROM lane WHERE media = ? AND owner = ? AND turn = ?)'

const statementsOf = (isStrict: boolean): Statements => ({
  accept: (events) =>
    step(async (tx) => {
      const answers: Acceptance[] = []
      for (const event of events) answers.push(await accept(tx, event, isStrict))
      return answers
    }),
  overdue: (limit) =>
    step(async (tx) => {
      const { rows } = await query(tx, 'SELECT * FROM expectation WHERE due_at <= ? LIMIT ?', Date.now(), limit)
      const overdue = rows.map((row) => ({ hash: `${row['hash']}`, media: `${row['media']}`, place: undefined }))
      return { overdue, nextInMs: await minOf(tx, 'SELECT min(due_at) AS next FROM expectation') }
    }),
  fire: (overdue) =>
    step(async (tx) => {
      for (const { hash: key } of overdue) {
        const { rows } = await query(tx, 'DELETE FROM expectation WHERE hash = ? RETURNING *', key)
        for (const row of rows as unknown as (NewEvent & { due_at: number })[])
          await accept(
            tx,
            { ...row, receivedAt: row.due_at, trace: row.trace ?? undefined, changes: undefined },
            isStrict,
          )
      }
      return overdue.length
    }),
  claim: ({ owner, lanes, marked }) =>
    step(async (tx) => {
      const claimed: ClaimedLane[] = []
      for (const [where, limit] of [
        ['crashes = 0', lanes],
        ['crashes > 0', marked],
      ] as const) {
        const free = `SELECT media FROM lane WHERE owner IS NULL AND ready_at <= ? AND ${where} ORDER BY ready_at LIMIT ?`
        for (const row of (await query(tx, free, Date.now(), limit)).rows) {
          const media = `${row['media']}`
          await query(tx, 'UPDATE lane SET owner = ?, turn = turn + 1, ready_at = NULL WHERE media = ?', owner, media)
          claimed.push(await readLane(tx, media, isStrict))
        }
      }
      const nextInMs = await minOf(tx, 'SELECT min(ready_at) AS next FROM lane WHERE owner IS NULL')
      return { lanes: claimed, nextInMs, isHeldUp: false }
    }),
  settle: (owner, lanes, events) =>
    step(async (tx) => {
      const recorded: { media: string; readyInMs: number }[] = []
      for (const lane of lanes) {
        const held = 'SELECT 1 FROM lane WHERE media = ? AND owner = ? AND turn = ? AND position >= ?'
        if ((await query(tx, held, lane.media, owner, lane.turn, lane.first)).rows.length === 0) continue
        for (const event of events) if (event.media === lane.media) await settleEvent(tx, event)
        recorded.push({ media: lane.media, readyInMs: await settleLane(tx, lane, isStrict) })
      }
      return recorded
    }),
  count: ({ owner, media, turn, id }, from, to) =>
    step(async (tx) => {
      const sql = `UPDATE event SET crashes = ? WHERE id = ? AND crashes IN (?, ?) AND ${isHeld}`
      return (await query(tx, sql, to, id, from, to, media, owner, turn)).rowsAffected > 0
    }),
  // What a process held when it died, it may have been running.
  join: () =>
    step(async (tx) => {
      const now = Date.now()
      await query(tx, 'UPDATE lane SET owner = NULL, crashes = crashes + 1, ready_at = ? WHERE owner IS NOT NULL', now)
    }),
  leave: (owner) =>
    step(
      async (tx) =>
        void (await query(tx, 'UPDATE lane SET owner = NULL, ready_at = ? WHERE owner = ?', Date.now(), owner)),
    ),
  replay: (dead) =>
    step(async (tx) => {
      const found: number[] = []
      for (const { id, media } of dead) {
        const sql = `UPDATE event SET id = ?, died_at = NULL, attempts = 0, crashes = 0, since = ?
          WHERE id = ? AND died_at IS NOT NULL AND body IS NULL`
        if ((await query(tx, sql, await nextId(tx), Date.now(), id)).rowsAffected === 0) continue
        found.push(id)
        await wake(tx, media, isStrict)
      }
      return found
    }),
  keep: ({ hash: key, head, body }) =>
    step(async (tx) => {
      const columns = 'id, hash, head, body, received_at, died_at'
      const sql = `INSERT INTO event (${columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING`
      await query(tx, sql, await nextId(tx), key, head, body, Date.now())
    }),
  replace: (unreadable, event) =>
    step(async (tx) => {
      const gone = await query(tx, 'DELETE FROM event WHERE hash = ? AND body IS NOT NULL', unreadable)
      return gone.rowsAffected === 0 ? 'gone' : accept(tx, event, isStrict, Date.now())
    }),
  retry: (key) =>
    step(async (tx) => {
      const now = Date.now()
      const { rows } = await query(
        tx,
        'UPDATE event SET due_at = ?2 WHERE hash = ?1 AND due_at > ?2 RETURNING media',
        key,
        now,
      )
      await query(tx, 'UPDATE lane SET ready_at = ? WHERE media = ?', now, `${rows[0]?.['media']}`)
      return rows.length > 0
    }),
  expire: () =>
    step(async (tx) => {
      const before = Date.now() - ttlMs
      await query(tx, 'DELETE FROM event WHERE ended_at < ?', before)
      await query(tx, 'DELETE FROM expectation_end WHERE accepted_at < ?', before)
      const isIdle =
        'owner IS NULL AND ready_at IS NULL AND NOT EXISTS (SELECT 1 FROM event WHERE event.media = lane.media)'
      await query(tx, `DELETE FROM lane WHERE ${isIdle}`)
      return { nextInMs: 60_000 }
    }),
})

export class LibsqlDatabase implements Database {
  readonly statements: Statements
  readonly dialect = dialect
  readonly hashKey = hash
  readonly hashMedia = hash
  readonly isListening = true
  readonly #host: InboxHost
  readonly #client: Client
  #opening: Promise<void> | undefined
  /** The last step: a local database takes one at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(host: InboxHost, url: string) {
    this.#host = host
    this.#client = createClient({ url, intMode: 'number' })
    this.statements = statementsOf(host.order === 'strict')
  }

  open(opened: () => Promise<void>): void {
    this.#opening = this.#inTurn(() => this.#client.batch(schema, 'write')).then(opened)
    this.#opening.catch((error) => {
      this.#host.logger.error({ err: error }, 'the database cannot be opened yet')
      setTimeout(() => this.open(opened), 1_000).unref()
    })
  }

  async ready(): Promise<void> {
    await this.#opening?.catch((cause) => {
      throw new WebhookError('unavailable', 'libsqlInbox: the database cannot be opened', { cause })
    })
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run)
    this.#last = turn.catch(() => {})
    return turn
  }

  #write<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
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

  run<Result>(given: Step<Result>): Promise<Result> {
    return this.#write((tx) => (given as LibsqlStep<Result>).run(tx))
  }

  async read<Row>(sql: string, values: readonly Value[] = []): Promise<Row[]> {
    return (await this.#inTurn(() => this.#client.execute(named({ sql, values })))).rows as Row[]
  }

  async change(statements: readonly Statement[]): Promise<readonly number[]> {
    const results = await this.#inTurn(() => this.#client.batch(statements.map(named), 'write'))
    return results.map(({ rowsAffected }) => rowsAffected)
  }

  async transaction<Result>(...[held, scope, run]: Parameters<Database['transaction']>): Promise<Result> {
    return this.#write(async (tx) => {
      scope.signal.throwIfAborted()
      const { rowsAffected } = await query(
        tx,
        `UPDATE event SET completed = json_insert(completed, '$[#]', ?) WHERE id = ? AND ended_at IS NULL AND died_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM json_each(completed) WHERE value = ?) AND ${isHeld}`,
        ...[scope.handler, held.id, scope.handler, held.media, held.owner, held.turn],
      )
      if (rowsAffected === 0) throw new WebhookError('lease_lost', 'the event has ended, or its handler has completed')
      return (await unlessAborted(scope.signal, run(tx as never))) as Result
    })
  }

  failure(error: unknown): 'transient' | undefined {
    return /SQLITE_BUSY|HRANA|fetch/.test(`${Object(error).code}`) ? 'transient' : undefined
  }

  async close(): Promise<void> {
    await this.#last
    this.#client.close()
  }
}

/** Puts the time, the names of tables and the places of values in a statement that all databases share. */
const named = ({ sql, values = [] }: Statement) => ({
  sql: sql
    .replaceAll('$now', `${Date.now()}`)
    .replaceAll(/\$(\d+)/g, '?$1')
    .replaceAll(/\$([a-z]\w*)/g, '$1'),
  args: [...values],
})
