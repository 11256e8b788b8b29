// The database that docs/add-a-database.md explains: SQLite behind libsql's asynchronous client, as Turso serves it. One
// process at a time has it. AUTOINCREMENT: an id that was deleted is not drawn again, below the `position` of its lane.
import { createHash } from 'node:crypto'
import { type Client, createClient, type InValue, type Row, type Transaction } from '@libsql/client'
import { WebhookError } from '../../../src/errors.ts'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import type { Acceptance, InboxDefinition, InboxHost, Transactional } from '../../../src/inbox/inbox.ts'
import type * as port from '../../../src/inbox/sql/database.ts'
import { SqlInbox } from '../../../src/inbox/sql/inbox.ts'
import { dialect } from '../../../src/inbox/sqlite/dialect.ts'
import { unlessAborted } from '../../../src/internal/unless-aborted.ts'

/** An inbox in a database of libsql, such as one of Turso. */
export const libsqlInbox = (url: string, ttlMs = 86_400_000): InboxDefinition<Transactional<Transaction>> =>
  defineInbox({
    name: 'libsqlInbox',
    storage: 'file',
    expects: true,
    ordersStrictly: true,
    limits: true,
    open: (host) => new SqlInbox(host, new LibsqlDatabase(host, url, ttlMs), { handles: true, concurrency: 16, ttlMs }),
  })

const schema = [
  `CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, media TEXT, event TEXT,
     head TEXT, trace TEXT, body BLOB, replay INTEGER NOT NULL DEFAULT 0, received_at INTEGER NOT NULL, since INTEGER, owed TEXT,
     attempts INTEGER NOT NULL DEFAULT 0, completed TEXT NOT NULL DEFAULT '[]', failed TEXT, crashes INTEGER NOT NULL DEFAULT 0,
     late INTEGER NOT NULL DEFAULT 0, awaits TEXT, due_at INTEGER, ended_at INTEGER, died_at INTEGER)`,
  'CREATE INDEX IF NOT EXISTS event_lane ON event (media, id)',
  'CREATE INDEX IF NOT EXISTS event_due ON event (media, due_at) WHERE due_at IS NOT NULL',
  'CREATE INDEX IF NOT EXISTS event_died ON event (died_at, id) WHERE died_at IS NOT NULL',
  `CREATE TABLE IF NOT EXISTS lane (media TEXT PRIMARY KEY, owner TEXT, turn INTEGER NOT NULL DEFAULT 0, ready_at INTEGER,
     position INTEGER NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0, latest_at INTEGER)`,
  'CREATE INDEX IF NOT EXISTS lane_ready ON lane (ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL',
  `CREATE TABLE IF NOT EXISTS expectation (hash TEXT PRIMARY KEY, subject TEXT, media TEXT, rule TEXT, began_at INTEGER,
     due_at INTEGER, event TEXT, head TEXT, trace TEXT, owed TEXT)`,
  'CREATE TABLE IF NOT EXISTS expectation_end (subject TEXT PRIMARY KEY, ended_at INTEGER, accepted_at INTEGER)',
  'CREATE TABLE IF NOT EXISTS operation (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, events TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS pause (handler TEXT PRIMARY KEY, since INTEGER NOT NULL, paused_by TEXT)',
  'CREATE TABLE IF NOT EXISTS activity (minute INTEGER, process TEXT, numbers TEXT, PRIMARY KEY (minute, process))',
]

type Run = <Found = Row>(sql: string, ...args: readonly InValue[]) => Promise<readonly Found[]>
type LibsqlStep<Result> = port.Step<Result> & { run(query: Run): Promise<Result> }
const step = <Result>(run: (query: Run) => Promise<Result>): LibsqlStep<Result> => ({ run })
const doing = (sql: string, ...args: readonly InValue[]) => step(async (query) => void (await query(sql, ...args)))

async function inOrder<Item, Result>(items: readonly Item[], run: (item: Item) => Promise<readonly Result[]>) {
  const results: Result[] = []
  for (const item of items) results.push(...(await run(item)))
  return results
}
async function msUntilNext(query: Run, sql: string, ...args: readonly InValue[]): Promise<number> {
  const { next = null } = (await query<{ next: number | null }>(sql, ...args))[0] ?? {}
  return next === null ? Number.POSITIVE_INFINITY : Math.max(0, next - Date.now())
}

/** Only for new events: a duplicate wakes nobody. In strict order, a lane that waits for a retry goes on waiting. */
const wake = (isStrict: boolean): string => `INSERT INTO lane (media, ready_at) VALUES (?1, ?2)
  ON CONFLICT (media) DO UPDATE SET ready_at = ?2 WHERE ready_at IS NULL ${isStrict ? '' : 'OR ready_at > ?2'}`

const insertEnd = `INSERT INTO expectation_end VALUES (?1, ?2, ?3)
  ON CONFLICT DO UPDATE SET ended_at = max(ended_at, ?2), accepted_at = ?3`
const insertExpectation = `INSERT INTO expectation SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
  WHERE NOT EXISTS (SELECT 1 FROM expectation_end WHERE subject = ?2 AND ended_at >= ?5) ON CONFLICT DO NOTHING`

type Accepted = Omit<port.NewEvent, 'changes'> & { readonly changes?: port.StoredChanges | undefined }
async function accept(query: Run, isStrict: boolean, accepted: Accepted, since: number | null): Promise<[Acceptance]> {
  const { hash: key, media, event, head, trace = null, receivedAt, owed = null, changes } = accepted
  if ((await query('SELECT 1 FROM event WHERE hash = ?', key)).length > 0) return ['duplicate']
  const insert = `INSERT INTO event (hash, media, event, head, trace, received_at, since, owed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
  await query(insert, key, media, event, head, trace, receivedAt, since, owed)
  await query(wake(isStrict), media, Date.now())
  const { at = 0, ends = [], begins = [] } = changes ?? {}
  for (const subject of ends) {
    await query('DELETE FROM expectation WHERE subject = ? AND began_at <= ?', subject, at)
    await query(insertEnd, subject, at, Date.now())
  }
  for (const { subject, rule, beganAt, dueAt, trace: carrier = null, ...begun } of begins) {
    const overdue = [begun.event, begun.head, carrier, begun.owed]
    await query(insertExpectation, begun.hash, subject, begun.media, rule, beganAt, dueAt, ...overdue)
  }
  return ['accepted']
}

const claimLanes = `UPDATE lane SET owner = ?, turn = turn + 1, ready_at = NULL WHERE media IN (
  SELECT media FROM lane WHERE owner IS NULL AND ready_at <= ? AND (crashes > 0) = ? ORDER BY ready_at LIMIT ?) RETURNING *`
const maxEvents = 64

/** Due retries (in strict order all), then untried events. `died_at`: a lane that was made again starts at position 0. */
const readEvents = (isStrict: boolean): string => `
  SELECT id, event, trace, received_at AS receivedAt, owed, attempts, completed, failed, crashes, late,
    coalesce(due_at, since, received_at) AS since, due_at IS NOT NULL AS isRetry, max(0, coalesce(due_at, 0) - ?3) AS dueInMs
  FROM event WHERE media = ?1 AND (${isStrict ? 'due_at IS NOT NULL' : 'due_at <= ?3'}
    OR id > ?2 AND ended_at IS NULL AND died_at IS NULL AND due_at IS NULL) ORDER BY id LIMIT ${maxEvents + 1}`

async function claim(query: Run, isStrict: boolean, { owner, lanes, marked }: port.ClaimRequest) {
  const now = Date.now()
  type LaneRow = port.ClaimedLane & { readonly latest_at: number | null }
  const claimLane = (isMarked: number, limit: number) => query<LaneRow>(claimLanes, owner, now, isMarked, limit)
  const read = async ({ media, turn, position, crashes, latest_at }: LaneRow) => {
    const found = await query<port.StoredEvent>(readEvents(isStrict), media, position, now)
    const events = found.slice(0, maxEvents).map((row) => ({ ...row, late: !!row.late, isRetry: !!row.isRetry }))
    const hasMore = found.length > maxEvents
    return [{ media, turn, position, crashes, latestAt: latest_at ?? undefined, events, hasMore, awaits: false }]
  }
  const claimed = await inOrder([...(await claimLane(0, lanes)), ...(await claimLane(1, marked))], read)
  const nextInMs = await msUntilNext(query, 'SELECT min(ready_at) AS next FROM lane')
  return { lanes: claimed, nextInMs, isHeldUp: false }
}

/** `turn`: a release may be repeated after the next claim. `position`: a settle must not overtake an earlier one. */
const isOurs = 'SELECT 1 FROM lane WHERE media = ? AND owner = ? AND turn = ? AND position >= ?'

/** `attempts`: a settle that is repeated changes nothing. The union: a transaction may have recorded more. */
const settleEvent = `
  UPDATE event SET attempts = ?3, failed = coalesce(?4, failed), late = max(late, ?5),
    completed = (SELECT json_group_array(json(name)) FROM (SELECT completed -> fullkey AS name FROM json_each(completed) UNION SELECT ?6 -> fullkey FROM json_each(?6))),
    crashes = CASE WHEN ?2 IN ('progress', 'release') THEN crashes ELSE 0 END,
    due_at = CASE WHEN ?2 IN ('retry', 'release') THEN ?8 WHEN ?2 = 'progress' THEN due_at END,
    ended_at = CASE WHEN ?2 = 'end' THEN ?9 END, event = CASE WHEN ?2 <> 'end' THEN event END,
    died_at = CASE WHEN ?2 = 'dead' THEN ?9 END
  WHERE id = ?1 AND attempts = ?7 AND ended_at IS NULL AND died_at IS NULL`

/** In strict order the first event decides when a lane is ready; in loose order an untried one, or the first due, even at rest. */
function settleLane(isStrict: boolean): string {
  const untried = 'CASE WHEN ?6 OR ready_at IS NOT NULL THEN ?8 END'
  const due = `(SELECT due_at FROM event WHERE event.media = ?1 AND due_at IS NOT NULL ORDER BY ${isStrict ? 'id' : 'due_at'} LIMIT 1)`
  return `UPDATE lane SET position = max(position, ?2), latest_at = coalesce(max(latest_at, ?3), ?3, latest_at),
      crashes = crashes * ?4, owner = CASE WHEN ?5 THEN NULL ELSE owner END,
      ready_at = CASE WHEN ?5 THEN coalesce(${isStrict ? `?7, ${due}, ${untried}` : `min(?7, max(${due}, ?8 + 1000)), ?7, ${untried}, ${due}`}) ELSE ready_at END
    WHERE media = ?1 RETURNING CASE WHEN owner IS NULL THEN ready_at END AS next`
}

function settle(query: Run, isStrict: boolean, ...[owner, lanes, events]: Parameters<port.Steps['settle']>) {
  return inOrder(lanes, async ({ media, turn, first, last, latestAt = null, clear, release }) => {
    if ((await query(isOurs, media, owner, turn, first)).length === 0) return []
    const now = Date.now()
    for (const event of events.filter((each) => each.media === media)) {
      const { id, kind, attempts, failed = null, late, completed, counts, delayMs } = event
      const values = [attempts, failed, Number(late), JSON.stringify(completed), attempts - Number(counts)]
      await query(settleEvent, id, kind, ...values, Math.ceil(now + delayMs), now)
    }
    const restUntil = release?.restMs === undefined ? null : Math.ceil(now + release.restMs)
    const released = [Number(release !== undefined), Number(release?.hasMore === true), restUntil, now]
    const values = [media, last, latestAt, Number(!clear), ...released]
    return [{ media, readyInMs: await msUntilNext(query, settleLane(isStrict), ...values) }]
  })
}

/** A replay gets a new id: accepted again, at the end of its lane. */
const again = `UPDATE event SET id = (SELECT seq FROM sqlite_sequence WHERE name = 'event'), died_at = NULL,
  attempts = 0, crashes = 0, since = ?2 WHERE id = ?1 AND died_at IS NOT NULL AND body IS NULL RETURNING 1`
const keep = `INSERT INTO event (hash, head, body, received_at, died_at) VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING`
const count = `UPDATE event SET crashes = ?1 WHERE id = ?2 AND crashes IN (?1, ?3)
  AND EXISTS (SELECT 1 FROM lane WHERE media = ?4 AND owner = ?5 AND turn = ?6) RETURNING 1`
const complete = `UPDATE event SET completed = json_insert(completed, '$[#]', ?1) WHERE id = ?2 AND ended_at IS NULL
  AND died_at IS NULL AND ?1 NOT IN (SELECT value FROM json_each(completed))
  AND EXISTS (SELECT 1 FROM lane WHERE media = ?3 AND owner = ?4 AND turn = ?5) RETURNING 1`
const forgetLanes = `DELETE FROM lane WHERE owner IS NULL AND ready_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM event WHERE event.media = lane.media)`

const statementsOf = (isStrict: boolean, ttlMs: number): port.Steps => ({
  accept: (events) => step((query) => inOrder(events, (event) => accept(query, isStrict, event, null))),
  overdue: (limit) =>
    step(async (query) => {
      const sql = 'SELECT hash, media FROM expectation WHERE due_at <= ? LIMIT ?'
      const overdue = await query<port.OverdueExpectation>(sql, Date.now(), limit)
      return { overdue, nextInMs: await msUntilNext(query, 'SELECT min(due_at) AS next FROM expectation') }
    }),
  fire: (overdue) =>
    step(async (query) => {
      const take = 'DELETE FROM expectation WHERE hash = ? RETURNING *, due_at AS receivedAt'
      const events = await inOrder(overdue, ({ hash: key }) => query<Accepted>(take, key))
      return (await inOrder(events, (event) => accept(query, isStrict, event, null))).length
    }),
  claim: (request) => step((query) => claim(query, isStrict, request)),
  settle: (...given) => step((query) => settle(query, isStrict, ...given)),
  count: ({ owner, media, turn, id }, from, to) =>
    step(async (query) => (await query(count, to, id, from, media, owner, turn)).length > 0),
  join: () =>
    doing('UPDATE lane SET owner = NULL, crashes = crashes + 1, ready_at = ? WHERE owner IS NOT NULL', Date.now()),
  leave: (owner) => doing('UPDATE lane SET owner = NULL, ready_at = ? WHERE owner = ?', Date.now(), owner),
  replay: (dead) =>
    step((query) =>
      inOrder(dead, async ({ id, media }) => {
        await query("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'event'")
        const found = await query(again, id, Date.now())
        if (found.length > 0) await query(wake(isStrict), media, Date.now())
        return found.map(() => id)
      }),
    ),
  keep: ({ hash: key, head, body }) => doing(keep, key, head, body, Date.now()),
  replace: (unreadable, events) =>
    step(async (query) => {
      const gone = await query('DELETE FROM event WHERE hash = ? AND body IS NOT NULL RETURNING 1', unreadable)
      return gone.length === 0 ? 'gone' : inOrder(events, (event) => accept(query, isStrict, event, Date.now()))
    }),
  retry: (key) =>
    step(async (query) => {
      const due = 'UPDATE event SET due_at = ?1 WHERE hash = ?2 AND due_at > ?1 RETURNING media'
      const [row] = await query<{ media: string }>(due, Date.now(), key)
      if (row) await query('UPDATE lane SET ready_at = ? WHERE media = ?', Date.now(), row.media)
      return row !== undefined
    }),
  expire: () =>
    step(async (query) => {
      await query('DELETE FROM event WHERE ended_at < ?', Date.now() - ttlMs)
      await query('DELETE FROM expectation_end WHERE accepted_at < ?', Date.now() - ttlMs)
      await query(forgetLanes)
      return { nextInMs: 60_000 }
    }),
})

const hash = (text: string): string => createHash('sha256').update(JSON.stringify(text)).digest('hex')
/** Puts the time, the names of tables and the places of values in a statement that all databases share. */
const named = ({ sql, values = [] }: port.Statement) => ({
  sql: sql
    .replaceAll('$now', `${Date.now()}`)
    .replaceAll(/\$(?=\d)/g, '?')
    .replaceAll(/\$(?=[a-z])/g, ''),
  args: [...values],
})

export class LibsqlDatabase implements port.Database {
  readonly steps: port.Steps
  readonly dialect = { ...dialect, lane: (media: string) => media }
  readonly hashKey = hash
  readonly hashMedia = hash
  readonly isListening = true
  readonly #host: InboxHost
  readonly #client: Client
  #opening = Promise.resolve()
  #last: Promise<unknown> = Promise.resolve()

  constructor(host: InboxHost, url: string, ttlMs: number) {
    this.#host = host
    this.#client = createClient({ url, intMode: 'number' })
    this.steps = statementsOf(host.order === 'strict', ttlMs)
  }

  open(opened: () => Promise<void>): void {
    this.#opening = this.#inTurn(() => this.#client.batch(schema, 'write')).then(opened)
    this.#opening.catch((error) => {
      this.#host.logger.error({ err: error }, 'the database cannot be opened yet')
      setTimeout(() => this.open(opened), 1_000).unref()
    })
  }

  ready(): Promise<void> {
    return this.#opening.catch((cause) => {
      throw new WebhookError('unavailable', 'libsqlInbox: the database cannot be opened', { cause })
    })
  }

  /** A local database takes one step at a time. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run)
    this.#last = turn.catch(() => {})
    return turn
  }

  #write<T>(run: (query: Run, tx: Transaction) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const tx = await this.#client.transaction('write')
      const query = async (sql: string, ...args: InValue[]) => (await tx.execute({ sql, args })).rows
      const result = run(query as Run, tx).then((value) => tx.commit().then(() => value))
      return result.finally(() => tx.close())
    })
  }

  run<Result>(given: port.Step<Result>): Promise<Result> {
    return this.#write((query) => (given as LibsqlStep<Result>).run(query))
  }

  async read<Row>(sql: string, values: readonly port.Value[] = []): Promise<Row[]> {
    return (await this.#inTurn(() => this.#client.execute(named({ sql, values })))).rows as Row[]
  }

  async change(statements: readonly port.Statement[]): Promise<readonly number[]> {
    const results = await this.#inTurn(() => this.#client.batch(statements.map(named), 'write'))
    return results.map(({ rowsAffected }) => rowsAffected)
  }

  async transaction<Result>(...[held, scope, run]: Parameters<port.Database['transaction']>): Promise<Result> {
    return this.#write(async (query, tx) => {
      scope.signal.throwIfAborted()
      const rows = await query(complete, scope.handler, held.id, held.media, held.owner, held.turn)
      if (rows.length === 0) throw new WebhookError('lease_lost', 'the event has ended, or its handler has completed')
      return (await unlessAborted(scope.signal, run(tx as never))) as Result
    })
  }

  readonly failure = (error: unknown) =>
    /SQLITE_BUSY|HRANA|fetch/.test(`${Object(error).code}`) ? ('transient' as const) : undefined

  close(): Promise<void> {
    return this.#last.then(() => this.#client.close())
  }
}
