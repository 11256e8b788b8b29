import { hash } from 'node:crypto'
import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { Logger } from '../../internal/logger.ts'
import type { DeadLetter, DeadLetters, HandlerFailure, ParseUnreadable, UnreadableDelivery } from '../inbox.ts'
import { maxUnreadable, reviveEvent, unreadableKey } from '../shared/stored.ts'
import type { Database } from './database.ts'
import { hashKey, hashMedia } from './keys.ts'

/** The payload of the notification that an unreadable delivery has been marked for a replay. */
export const replayMark = 'replay'

/** The JSON of a dead letter that is an event. */
interface StoredDeadEvent {
  readonly event: MediaEvent
  readonly completed: readonly string[]
  readonly receivedAt: number
  readonly end: {
    readonly key: string
    readonly attempts: number
    readonly failures: readonly HandlerFailure[]
    readonly diedAt: string
  }
}

/** The JSON of an unreadable delivery. Its body has a column of its own. */
interface StoredUnreadable {
  readonly key: string
  readonly reason: string
  readonly eventId?: string
  readonly receivedAt: string
}

interface Row {
  readonly dead_letter: string
  /** In base64. */
  readonly body: string | null
}

const columns = "dead_letter::text, encode(body, 'base64') AS body"

/** The dead letters in the database. */
export class PostgresDeadLetters implements DeadLetters {
  readonly #database: Database
  readonly #channel: string
  readonly #parse: ParseUnreadable | undefined
  readonly #checkOpen: () => void

  /**
   * @param parse parses an unreadable delivery. Without it, a replay marks the delivery for a process that has the inbox open
   * @param checkOpen throws once the inbox is closing
   */
  constructor(database: Database, channel: string, parse?: ParseUnreadable, checkOpen = () => {}) {
    this.#database = database
    this.#channel = channel
    this.#parse = parse
    this.#checkOpen = checkOpen
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    const rows = await this.#query<Row>(`SELECT ${columns} FROM $dead_letter ORDER BY id DESC LIMIT $1 OFFSET $2`, [
      Math.max(0, limit),
      Math.max(0, offset),
    ])
    return rows.map(toDeadLetter)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const [row] = await this.#query<Row>(`SELECT ${columns} FROM $dead_letter WHERE hash = $1`, [hashKey(key)])
    return row && toDeadLetter(row)
  }

  async size(): Promise<number> {
    const [row] = await this.#query<{ count: string }>('SELECT count(*)::text AS count FROM $dead_letter')
    return Number(row?.count)
  }

  async discard(key: string): Promise<boolean> {
    const rows = await this.#query('DELETE FROM $dead_letter WHERE hash = $1 RETURNING 1', [hashKey(key)])
    return rows.length > 0
  }

  async replay(key: string): Promise<boolean> {
    this.#checkOpen()
    const { event, unreadable } = (await this.get(key)) ?? {}
    if (event !== undefined) return this.#putBack(key, event)
    if (unreadable === undefined) return false
    if (this.#parse === undefined) return this.#mark(key)
    return this.#replace(key, unreadable, await this.#parse(unreadable))
  }

  /** Puts the event back in its place, with fresh attempts. */
  async #putBack(key: string, event: MediaEvent): Promise<boolean> {
    const rows = await this.#query(
      `WITH gone AS (DELETE FROM $dead_letter WHERE hash = $1 AND event_id IS NOT NULL RETURNING event_id, dead_letter),
       back AS (
         INSERT INTO $event (id, media, event, received_at, completed)
         SELECT event_id, $2, dead_letter -> 'event', to_timestamp((dead_letter ->> 'receivedAt')::float8 / 1000),
           ARRAY(SELECT json_array_elements_text(dead_letter -> 'completed'))
         FROM gone
       )
       SELECT pg_notify($3, '') FROM gone`,
      [hashKey(key), hashMedia(event.mediaId), this.#channel],
    )
    return rows.length > 0
  }

  async #mark(key: string): Promise<boolean> {
    const rows = await this.#query(
      `WITH marked AS (UPDATE $dead_letter SET replay = true WHERE hash = $1 RETURNING 1)
       SELECT pg_notify($2, '${replayMark}') FROM marked`,
      [hashKey(key), this.#channel],
    )
    return rows.length > 0
  }

  /** Replaces an unreadable delivery by the event that was parsed of it, unless that event is known. */
  async #replace(key: string, { receivedAt }: UnreadableDelivery, event: MediaEvent): Promise<boolean> {
    const rows = await this.#query(
      `WITH gone AS (DELETE FROM $dead_letter WHERE hash = $1 RETURNING 1),
       new AS (
         INSERT INTO $key (hash, id) SELECT $2::uuid, nextval($3) FROM gone ON CONFLICT DO NOTHING RETURNING id
       ), stored AS (
         INSERT INTO $event (id, media, event, received_at)
         SELECT id, $4, $5::json, to_timestamp($6::float8 / 1000) FROM new
       )
       SELECT pg_notify($7, '') FROM gone`,
      [
        hashKey(key),
        hashKey(event.key),
        `${this.#database.schema}.event_id`,
        hashMedia(event.mediaId),
        JSON.stringify(event),
        receivedAt.getTime(),
        this.#channel,
      ],
    )
    return rows.length > 0
  }

  /** Keeps an unreadable delivery, unless it is there, and drops the oldest one above the limit. */
  async keepUnreadable({ body, ...unreadable }: UnreadableDelivery): Promise<void> {
    const key = unreadableKey(hash('sha256', body, 'base64url').slice(0, 22))
    await this.#query(
      `INSERT INTO $dead_letter (hash, dead_letter, body) VALUES ($1, $2, decode($3, 'base64')) ON CONFLICT DO NOTHING`,
      [hashKey(key), JSON.stringify({ ...unreadable, key }), toBase64(body)],
    )
    await this.#query(
      `DELETE FROM $dead_letter WHERE id IN (
         SELECT id FROM $dead_letter WHERE event_id IS NULL ORDER BY id DESC OFFSET ${maxUnreadable})`,
    )
  }

  /** Lists the unreadable deliveries that another program has marked for a replay, and removes the marks. */
  async takeMarked(): Promise<readonly string[]> {
    const rows = await this.#query<Row>(
      `UPDATE $dead_letter SET replay = false WHERE replay RETURNING dead_letter::text, NULL AS body`,
    )
    return rows.map(({ dead_letter }) => (JSON.parse(dead_letter) as StoredUnreadable).key)
  }

  /** Runs a statement in which `$dead_letter` and others are the names of tables. */
  #query<Result>(statement: string, values?: unknown[]): Promise<Result[]> {
    const text = statement.replaceAll(/\$([a-z]\w*)/g, `${this.#database.schema}.$1`)
    return this.#database.reach(() => this.#database.query<Result>(text, values))
  }
}

/** Replays the unreadable deliveries that another program has marked. One that still cannot be parsed stays. */
export async function replayMarked(deadLetters: PostgresDeadLetters, logger: Logger): Promise<void> {
  for (const key of await deadLetters.takeMarked()) {
    try {
      await deadLetters.replay(key)
    } catch (error) {
      if (!(error instanceof WebhookError) || error.code !== 'malformed') throw error
      logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
    }
  }
}

function toDeadLetter({ dead_letter: text, body }: Row): DeadLetter {
  const stored = JSON.parse(text) as StoredDeadEvent | StoredUnreadable
  if ('event' in stored) {
    const { event, completed, end } = stored
    const receivedAt = new Date(Math.round(stored.receivedAt))
    return { ...end, event: reviveEvent(event), completed, receivedAt, diedAt: new Date(end.diedAt) }
  }
  const { key, reason, eventId } = stored
  const receivedAt = new Date(stored.receivedAt)
  const unreadable = { reason, eventId, receivedAt, body: fromBase64(body ?? '') }
  const failures = [{ handler: 'none', message: reason }]
  return { key, event: undefined, unreadable, receivedAt, attempts: 0, completed: [], failures, diedAt: receivedAt }
}

const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
// Postgres breaks base64 into lines, which atob ignores.
const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
