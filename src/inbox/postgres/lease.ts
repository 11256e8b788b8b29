import { randomUUID } from 'node:crypto'
import { processName } from '../../internal/process-name.ts'
import { handlersJson } from '../engine/owed-handlers.ts'
import type { HandlerName } from '../inbox.ts'
import { claimedEvents, type HeldEvent, released } from './claimed.ts'
import type { Database } from './database.ts'
import { literal, lockClass, schemaVersion, turnOff } from './schema.ts'

/** The start of attempts, in ms since the epoch, by the ids of their events. */
export type LongRunning = Readonly<Record<string, number>>

/** Maximum time for the events of other processes, in ms. To find those of an earlier version's, it reads all events. */
const lookMs = 30_000

/**
 * The lease of this process: a row that it renews, by the clock of Postgres. Each row in `claim` has its id. Once it has
 * expired, any other process takes the claimed events over, and this one can record nothing about them.
 */
export class Lease {
  readonly #database: Database
  readonly #leaseMs: number
  readonly #suspects: number
  readonly #handlers: () => readonly HandlerName[]
  readonly #running: () => LongRunning | undefined
  #id: string = randomUUID()
  #generation = 0
  /** The handlers in the row. `undefined` while there is no row. */
  #published: readonly HandlerName[] | undefined

  /**
   * @param suspects the number of claimed events that become suspects if this process crashes
   * @param handlers the handlers of this process, another array after each change
   * @param running returns the attempts to publish with the next renewal
   */
  constructor(
    database: Database,
    leaseMs: number,
    suspects: number,
    handlers: () => readonly HandlerName[],
    running: () => LongRunning | undefined,
  ) {
    this.#database = database
    this.#leaseMs = leaseMs
    this.#suspects = suspects
    this.#handlers = handlers
    this.#running = running
  }

  get id(): string {
    return this.#id
  }

  /** It changes when this process gives up claims. A claim of an earlier generation claims nothing. */
  get generation(): number {
    return this.#generation
  }

  /** Begins a lease of its own, with a new id. */
  async register(): Promise<void> {
    this.#id = randomUUID()
    this.#generation = 0
    const { schema } = this.#database
    const handlers = this.#handlers()
    await this.#database.query(
      `WITH published AS (INSERT INTO ${schema}.claim (owner, events) VALUES ($1, '{}'))
       INSERT INTO ${schema}.owner (id, expires_at, suspects, handlers, process, version)
       VALUES ($1, clock_timestamp() + $2 * interval '1 ms', $3, $4, $5, ${schemaVersion})`,
      [this.#id, this.#leaseMs, this.#suspects, handlersJson(handlers), processName],
    )
    this.#published = handlers
  }

  /** `true` if the row does not have the handlers of this process. */
  get hasNewHandlers(): boolean {
    return this.#published !== undefined && this.#published !== this.#handlers()
  }

  /** Writes the handlers of this process to its row. */
  async publish(): Promise<void> {
    const handlers = this.#handlers()
    await this.#database.query(`UPDATE ${this.#database.schema}.owner SET handlers = $2 WHERE id = $1`, [
      this.#id,
      handlersJson(handlers),
    ])
    this.#published = handlers
  }

  /** Reads the handlers of each process with a valid lease. Processes of an earlier version do not publish theirs. */
  async readLive(): Promise<readonly (readonly HandlerName[])[]> {
    const rows = await this.#database.query<{ handlers: string }>(
      `SELECT handlers::text FROM ${this.#database.schema}.owner
       WHERE handlers IS NOT NULL AND NOT is_dead AND expires_at > clock_timestamp()`,
    )
    return rows.map(({ handlers }) => JSON.parse(handlers))
  }

  /**
   * Renews the lease, and publishes what has been running for long. Resolves with `isLost` if it is over, and with
   * `hasDead` if another one is over. Its row in `claim` is written again, so that all these rows are new, and a claim does
   * not start its read at an old one. If a claim replaces the row meanwhile, both rows stay until the next claim: what the
   * older one says no longer counts.
   */
  async renew(): Promise<{ readonly isLost: boolean; readonly hasDead: boolean }> {
    const { schema } = this.#database
    if (this.hasNewHandlers) await this.publish()
    const running = this.#running()
    const [renewed = [], dead = []] = await this.#database.batch(
      `UPDATE ${schema}.owner SET expires_at = clock_timestamp() + ${this.#leaseMs} * interval '1 ms',
         running = ${running === undefined ? 'NULL' : literal(JSON.stringify(running))}
       WHERE id = '${this.#id}' AND NOT is_dead RETURNING 1;
       SELECT FROM ${schema}.owner WHERE is_dead OR expires_at < clock_timestamp() LIMIT 1;
       WITH old AS (DELETE FROM ${schema}.claim WHERE owner = '${this.#id}' RETURNING owner, events, releases)
       INSERT INTO ${schema}.claim (owner, events, releases) SELECT owner, events, releases FROM old`,
    )
    return { isLost: renewed.length === 0, hasDead: dead.length > 0 }
  }

  /**
   * Takes over the events of processes whose lease is over. The first events were running, and become suspects: one of
   * them may have made its process crash. If a transaction has locked an event's row, the event is taken the next time.
   */
  async takeOver(): Promise<void> {
    const { schema } = this.#database
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       SET LOCAL statement_timeout = ${lookMs};
       ${turnOff('jit')};
       ${claimLock(schema)};
       UPDATE ${schema}.owner SET is_dead = true WHERE expires_at < clock_timestamp();
       WITH held AS (
         SELECT held.id, suspects, row_number() OVER (PARTITION BY owner.id ORDER BY held.id) AS place
         FROM ${schema}.owner CROSS JOIN LATERAL (${heldBy(schema, 'owner')}) held WHERE is_dead
       ), free AS (
         SELECT id FROM ${schema}.event WHERE id IN (SELECT id FROM held) FOR UPDATE SKIP LOCKED
       )
       UPDATE ${schema}.event SET ${released}, crashes = crashes + CASE WHEN place <= suspects THEN 1 ELSE 0 END
       FROM held JOIN free USING (id) WHERE event.id = held.id;
       DELETE FROM ${schema}.owner WHERE is_dead AND NOT EXISTS (${heldBy(schema, 'owner')});
       DELETE FROM ${schema}.claim WHERE owner NOT IN (SELECT id FROM ${schema}.owner);
       COMMIT`,
      lookMs,
    )
  }

  /**
   * Gives up the events that this process owns, except those in `held`: the answers to their claims were lost. If
   * Postgres runs such a claim later, it claims nothing, since it belongs to an earlier generation. The same is true
   * for a repetition of this step. A renewal that is writing the rows of `claim` again ends first.
   */
  async releaseOthers(held: readonly HeldEvent[]): Promise<void> {
    const { schema } = this.#database
    const generation = ++this.#generation
    const [ids, releases] = [held.map(({ id }) => id), held.map((event) => event.releases)]
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       ${claimLock(schema)};
       SELECT FROM ${schema}.owner WHERE id = '${this.#id}' FOR UPDATE;
       WITH current AS (
         UPDATE ${schema}.owner SET generation = ${generation} WHERE id = '${this.#id}' AND generation < ${generation}
         RETURNING id
       ), old AS (
         DELETE FROM ${schema}.claim USING current WHERE claim.owner = current.id RETURNING claim.owner, events
       ), others AS (
         UPDATE ${schema}.event SET owner = NULL FROM old
         WHERE event.id = ANY (old.events) AND event.owner = old.owner AND event.id <> ALL ('{${ids}}'::bigint[])
       )
       INSERT INTO ${schema}.claim (owner, events, releases)
       SELECT id, '{${ids}}', '{${releases}}' FROM current;
       COMMIT`,
      lookMs,
    )
  }

  /** Releases the lease, and every event, so that the next process has them immediately. */
  async release(): Promise<void> {
    const { schema, channel } = this.#database
    await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       ${claimLock(schema)};
       WITH given AS (
         UPDATE ${schema}.event SET ${released}
         WHERE id IN (SELECT id FROM (${claimedEvents(schema, `claim.owner = '${this.#id}'`)}) held) RETURNING 1
       )
       SELECT pg_notify(${literal(channel)}, '') FROM given LIMIT 1;
       DELETE FROM ${schema}.claim WHERE owner = '${this.#id}';
       DELETE FROM ${schema}.owner WHERE id = '${this.#id}';
       COMMIT`,
      lookMs,
    )
  }
}

/** Selects the events of a row of `owner`, also if its process is of an earlier version, which may publish none. */
const heldBy = (schema: string, row: string): string => `
  SELECT id FROM (${claimedEvents(schema, `claim.owner = ${row}.id`)}) published
  UNION SELECT id FROM ${schema}.event WHERE event.owner = ${row}.id AND ${row}.version IS NULL`

/** Runs the claims and takeovers of all processes one after another. Each sees the result of the previous one. */
export const claimLock = (schema: string): string =>
  `SELECT pg_advisory_xact_lock(${lockClass}, hashtext(${literal(`claim ${schema}`)}))`
