import { randomUUID } from 'node:crypto'
import { LeaseClock } from '../../internal/lease-clock.ts'
import { processName } from '../../internal/process-name.ts'
import type { PublishedHandlers } from '../engine/owed-handlers.ts'
import type { HandlerName } from '../inbox.ts'
import type { HeldEvent } from '../sql/event.ts'
import type { StoreListener } from '../sql/store.ts'
import { awaitedMark, publishedNames, toHandler } from './claim/awaited.ts'
import { claimedEvents, released } from './claim/claimed.ts'
import type { Database } from './database.ts'
import { literalOf } from './literals.ts'
import { literal, lockClass, turnOff } from './schema.ts'

/** Timeout of a takeover or a release (ms). */
const slowStepMs = 30_000

export interface Claimant {
  readonly id: string
  /** Incremented when the process gives up claims. Fences off claims in flight. */
  readonly generation: number
}

/**
 * The lease: a row that this process renews, by Postgres' clock. Its rows in `claim` have the same id. After expiry,
 * any process takes over the events, and this one can record nothing. Cut off from Postgres, it goes by its own clock.
 */
export class PostgresLease {
  readonly #database: Database['renewing']
  readonly #leaseMs: number
  readonly #suspects: number
  readonly #handlers: () => readonly HandlerName[]
  readonly #clock: LeaseClock
  #listener: Pick<StoreListener, 'longRunning' | 'cutOff'> | undefined
  #self: Claimant = { id: randomUUID(), generation: 0 }
  /** Handlers in the row. `undefined` while there is no row. */
  #published: readonly HandlerName[] | undefined

  /** `suspects`: claimed events that become suspects after a crash. `handlers`: a new array after each change. */
  constructor(database: Database, leaseMs: number, suspects: number, handlers: () => readonly HandlerName[]) {
    this.#database = database.renewing
    this.#leaseMs = leaseMs
    this.#suspects = suspects
    this.#handlers = handlers
    this.#clock = new LeaseClock(leaseMs, () => {
      this.#self = { ...this.#self }
      this.#listener?.cutOff()
    })
  }

  get id(): string {
    return this.#self.id
  }

  /** A new object after each lost lease, and after giving up claims. */
  get self(): Claimant {
    return this.#self
  }

  /** True from the end of the lease, by this process's clock, until it is renewed. */
  get isOver(): boolean {
    return this.#clock.isOver
  }

  /** Begins a new lease, under a new id. */
  async register(listener: Pick<StoreListener, 'longRunning' | 'cutOff'>): Promise<void> {
    this.#listener = listener
    this.#clock.stop()
    this.#self = { id: randomUUID(), generation: 0 }
    const { schema } = this.#database
    const sentAt = performance.now()
    const handlers = this.#handlers()
    await this.#database.query(
      `WITH published AS (INSERT INTO ${schema}.claim (owner) VALUES ($1))
       INSERT INTO ${schema}.owner (id, expires_at, lease_ms, suspects, handlers, process)
       VALUES ($1, clock_timestamp() + $2::float8 * interval '1 ms', $2::float8, $3, $4, $5)`,
      [this.id, this.#leaseMs, this.#suspects, publishedNames(handlers), processName],
    )
    await this.#recordRemoved(handlers, [])
    this.#published = handlers
    this.#clock.renewed(sentAt)
  }

  /** True if the row lacks the current handlers of this process. */
  get hasNewHandlers(): boolean {
    return this.#published !== undefined && this.#published !== this.#handlers()
  }

  async publish(): Promise<void> {
    const handlers = this.#handlers()
    await this.#database.query(`UPDATE ${this.#database.schema}.owner SET handlers = $2 WHERE id = $1`, [
      this.id,
      publishedNames(handlers),
    ])
    await this.#recordRemoved(handlers, this.#published ?? [])
    this.#published = handlers
  }

  /** Records handlers that neither this process nor another has any longer. Clears the record of those it has. */
  async #recordRemoved(own: readonly HandlerName[], former: readonly HandlerName[]): Promise<void> {
    const { schema, channel } = this.#database
    const names = own.map(({ name }) => JSON.stringify(name))
    const gone = former.map(({ name }) => JSON.stringify(name)).filter((name) => !names.includes(name))
    await this.#database.batch(
      `DELETE FROM ${schema}.removed_handler WHERE name = ANY (${literalOf(names)}::text[]);
       WITH removed AS (
         INSERT INTO ${schema}.removed_handler (name)
         SELECT DISTINCT name FROM unnest(${literalOf(gone)}::text[]) AS name WHERE NOT EXISTS (
           SELECT FROM ${schema}.owner CROSS JOIN unnest(handlers) AS handler
           WHERE id <> '${this.id}' AND (handler = name OR starts_with(handler, '[' || name || ','))
         ) ON CONFLICT (name) DO UPDATE SET removed_at = excluded.removed_at RETURNING 1
       )
       SELECT pg_notify(${literal(channel)}, '${awaitedMark}') FROM removed LIMIT 1`,
    )
  }

  async readHandlers(): Promise<PublishedHandlers> {
    const { schema } = this.#database
    const rows = await this.#database.query<{ handlers: string | null; removed: string | null }>(
      `SELECT array_to_json(handlers)::text AS handlers, NULL AS removed FROM ${schema}.owner
       WHERE NOT is_dead AND expires_at > clock_timestamp()
       UNION ALL SELECT NULL, name FROM ${schema}.removed_handler`,
    )
    return {
      live: rows.flatMap(({ handlers }) =>
        handlers === null ? [] : [(JSON.parse(handlers) as string[]).map(toHandler)],
      ),
      removed: rows.flatMap(({ removed }) => (removed === null ? [] : [JSON.parse(removed)])),
    }
  }

  /**
   * Renews the lease, and publishes what has been running for long. `isLost`: it is over. `hasDead`: another one is.
   * Also rewrites its row in `claim`: claims need not start reading at an old one. If a claim replaces the row
   * meanwhile, both stay until the next claim, and the older one no longer counts.
   */
  async renew(): Promise<{ readonly isLost: boolean; readonly hasDead: boolean }> {
    const { schema } = this.#database
    if (this.hasNewHandlers) await this.publish()
    const running = this.#listener?.longRunning()
    const sentAt = performance.now()
    const [renewed = [], dead = []] = await this.#database.batch(
      `UPDATE ${schema}.owner SET expires_at = clock_timestamp() + ${this.#leaseMs} * interval '1 ms',
         running = ${running === undefined ? 'NULL' : literal(JSON.stringify(running))}
       WHERE id = '${this.id}' AND NOT is_dead RETURNING 1;
       SELECT FROM ${schema}.owner WHERE is_dead OR expires_at < clock_timestamp() OR ${expiresTooLate} LIMIT 1;
       WITH old AS (DELETE FROM ${schema}.claim WHERE owner = '${this.id}' RETURNING owner, events, releases)
       INSERT INTO ${schema}.claim (owner, events, releases) SELECT owner, events, releases FROM old`,
    )
    const isLost = renewed.length === 0
    if (!isLost) this.#clock.renewed(sentAt)
    return { isLost, hasDead: dead.length > 0 }
  }

  /**
   * Takes over the events of expired leases. Some become suspects, as one of them may have crashed its process: the
   * first of each media item before others, since a lane runs one at a time. Events locked by a transaction must wait.
   */
  async takeOver(): Promise<void> {
    const { schema } = this.#database
    const heldByOwner = claimedEvents(schema, 'claim.owner = owner.id')
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       SET LOCAL statement_timeout = ${slowStepMs};
       ${turnOff('jit')};
       ${claimLock(schema)};
       UPDATE ${schema}.owner SET expires_at = ${leaseEnd} WHERE ${expiresTooLate};
       UPDATE ${schema}.owner SET is_dead = true WHERE expires_at < clock_timestamp();
       WITH ranked AS (
         SELECT held.id, owner.id AS owner, suspects, row_number() OVER (PARTITION BY owner.id, media ORDER BY held.id) AS rank
         FROM ${schema}.owner CROSS JOIN LATERAL (${heldByOwner}) held WHERE is_dead
       ), held AS (
         SELECT id, suspects, row_number() OVER (PARTITION BY owner ORDER BY rank, id) AS place FROM ranked
       ), free AS (
         SELECT id FROM ${schema}.event WHERE id IN (SELECT id FROM held) FOR UPDATE SKIP LOCKED
       )
       UPDATE ${schema}.event SET ${released}, crashes = crashes + CASE WHEN place <= suspects THEN 1 ELSE 0 END
       FROM held JOIN free USING (id) WHERE event.id = held.id;
       DELETE FROM ${schema}.owner WHERE is_dead AND NOT EXISTS (${heldByOwner});
       DELETE FROM ${schema}.claim WHERE owner NOT IN (SELECT id FROM ${schema}.owner);
       COMMIT`,
      slowStepMs,
    )
  }

  /**
   * Gives up all events except `held`: the answers to their claims were lost. The new generation fences off these
   * claims, and repeats of this step. The row lock lets a renewal that is rewriting `claim` finish first.
   */
  async releaseOthers(held: readonly HeldEvent[]): Promise<void> {
    const { schema } = this.#database
    const generation = this.#self.generation + 1
    this.#self = { ...this.#self, generation }
    const [ids, releases] = [held.map(({ id }) => id), held.map((event) => event.releases)]
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       ${claimLock(schema)};
       SELECT FROM ${schema}.owner WHERE id = '${this.id}' FOR UPDATE;
       WITH current AS (
         UPDATE ${schema}.owner SET generation = ${generation} WHERE id = '${this.id}' AND generation < ${generation}
         RETURNING id
       ), old AS (DELETE FROM ${schema}.claim USING current WHERE claim.owner = current.id)
       INSERT INTO ${schema}.claim (owner, events, releases)
       SELECT id, '{${ids}}', '{${releases}}' FROM current;
       COMMIT`,
      slowStepMs,
    )
  }

  /** Releases the lease and all events, for other processes to claim at once. */
  async release(): Promise<void> {
    this.#clock.stop()
    const { schema, channel } = this.#database
    await this.#recordRemoved([], this.#published ?? [])
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       ${claimLock(schema)};
       WITH given AS (
         UPDATE ${schema}.event SET ${released}
         WHERE id IN (SELECT id FROM (${claimedEvents(schema, `claim.owner = '${this.id}'`)}) held) RETURNING 1
       )
       SELECT pg_notify(${literal(channel)}, 'due') FROM given LIMIT 1;
       DELETE FROM ${schema}.claim WHERE owner = '${this.id}';
       DELETE FROM ${schema}.owner WHERE id = '${this.id}';
       COMMIT`,
      slowStepMs,
    )
  }
}

const leaseEnd = "clock_timestamp() + lease_ms * interval '1 ms'"

/** Condition: the lease was renewed while Postgres' clock was ahead. */
const expiresTooLate = `expires_at > ${leaseEnd}`

/** Serialises the claims and takeovers of all processes. Each sees the result of the one before. */
export const claimLock = (schema: string): string =>
  `SELECT pg_advisory_xact_lock(${lockClass}, hashtext(${literal(`claim ${schema}`)}))`
