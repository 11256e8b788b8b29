import { hash } from 'node:crypto'
import { WebhookError } from '../../errors.ts'
import { toBase64 } from '../../internal/base64.ts'
import { maxUnreadable, unreadableKey } from '../engine/stored.ts'
import type { InboxHost } from '../inbox.ts'
import { parseAgain } from '../operations/dead-letters.ts'
import { replayInSteps } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport, UnreadableDelivery } from '../reading.ts'
import { isUnreachable, type Tables } from './database.ts'
import { columns, columnsWithoutBody, type DeadLetterRow, toDeadLetter } from './dead-letter-row.ts'
import { withOwed } from './effects.ts'
import { hashKey, hashMedia } from './keys.ts'
import { mark, putBack, replaceUnreadable } from './replay.ts'

/** The number of dead letters that are listed at a time. */
const pageSize = 1_000

/** Maximum number of dead letters that are replayed in a commit. */
const largestCommit = 500

/** The number of old dead letters that get their media item at a time. */
const oldPageSize = 500

/** The dead letters in the database. */
export class PostgresDeadLetters implements DeadLetters {
  readonly #tables: Tables
  readonly #host: InboxHost | undefined
  readonly #checkOpen: () => void

  /**
   * @param host parses an unreadable delivery. Without it, a replay marks the delivery for a process with an open inbox
   * @param checkOpen throws once the inbox is closing
   */
  constructor(tables: Tables, host?: InboxHost, checkOpen = () => {}) {
    this.#tables = tables
    this.#host = host
    this.#checkOpen = checkOpen
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    const rows = await this.#tables.ask<DeadLetterRow>(
      `SELECT ${columns} FROM $dead_letter ORDER BY id DESC LIMIT $1 OFFSET $2`,
      [Math.max(0, limit), Math.max(0, offset)],
    )
    return rows.map(toDeadLetter)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const [row] = await this.#rows([key])
    return row && toDeadLetter(row)
  }

  #rows(keys: readonly string[]): Promise<DeadLetterRow[]> {
    const statement = `SELECT ${columns} FROM $dead_letter WHERE hash = ANY ($1::uuid[])`
    return this.#tables.ask(statement, [keys.map(hashKey)])
  }

  /** Lists the keys of the matching dead letters, oldest first. Later ones are left out. */
  async keys(matches = (_: DeadLetter) => true): Promise<readonly string[]> {
    const [newest] = await this.#tables.ask<{ id: string | null }>('SELECT max(id)::text AS id FROM $dead_letter')
    const keys: string[] = []
    // It pages by id: an offset would skip some if others are removed meanwhile.
    for (let after = '0'; ; ) {
      const rows = await this.#tables.ask<DeadLetterRow>(
        `SELECT ${columnsWithoutBody} FROM $dead_letter WHERE id > $1 AND id <= $2 ORDER BY id LIMIT ${pageSize}`,
        [after, newest?.id ?? '0'],
      )
      const found = rows.map(toDeadLetter).filter(matches)
      keys.push(...found.map(({ key }) => key))
      after = rows.at(-1)?.place ?? after
      if (rows.length < pageSize) return keys
    }
  }

  async discard(key: string): Promise<boolean> {
    return (await this.discardMany([key])).length > 0
  }

  /** Deletes dead letters permanently. Returns the keys of the deleted ones. */
  async discardMany(keys: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#tables.ask<DeadLetterRow>(
      `DELETE FROM $dead_letter WHERE hash = ANY ($1::uuid[]) RETURNING ${columnsWithoutBody}`,
      [keys.map(hashKey)],
    )
    return rows.map((row) => toDeadLetter(row).key)
  }

  async replay(key: string): Promise<boolean> {
    return (await this.#replay([key], rethrow)).length > 0
  }

  /**
   * Puts events back in their places, with fresh attempts, and parses unreadable deliveries or marks them. Returns the
   * keys of the replayed ones.
   */
  replayMany(keys: readonly string[]): Promise<readonly string[]> {
    return this.#replay(keys, ifMalformed)
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    const replay = (keys: readonly string[]) => this.replayMany(keys)
    return replayInSteps({ largestStep: largestCommit, keys: (matches) => this.keys(matches), replay }, options)
  }

  async #replay(keys: readonly string[], onFailure: (error: unknown) => false): Promise<readonly string[]> {
    this.#checkOpen()
    const rows = await this.#rows(keys)
    const events = rows.filter(({ body }) => body === null)
    const unreadable = rows.filter(({ body }) => body !== null)
    const replayed = [...(await putBack(this.#tables, events))]
    if (this.#host === undefined) return [...replayed, ...(await mark(this.#tables, unreadable))]
    for (const deadLetter of unreadable.map(toDeadLetter))
      if (await this.#parse(deadLetter, this.#host).catch(onFailure)) replayed.push(deadLetter.key)
    return replayed
  }

  async #parse({ key, unreadable }: DeadLetter, host: InboxHost): Promise<boolean> {
    this.#checkOpen()
    const parsed = await parseAgain(host, unreadable as UnreadableDelivery)
    const effects = host.expectations?.(parsed)
    return replaceUnreadable(this.#tables, key, parsed, effects && withOwed(effects, host.handlersOf))
  }

  /** Replays the unreadable deliveries that another program has marked. If one still cannot be parsed, it stays. */
  async replayMarked(): Promise<void> {
    const rows = await this.#tables.ask<DeadLetterRow>(
      `SELECT ${columnsWithoutBody} FROM $dead_letter WHERE replay ORDER BY id`,
    )
    for (const { key } of rows.map(toDeadLetter)) {
      try {
        await this.replay(key)
      } catch (error) {
        // In both cases it stays marked.
        if (error instanceof WebhookError && error.code === 'closing') return
        if (isUnreachable(error)) throw error
        this.#host?.logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
        await this.#tables.ask('UPDATE $dead_letter SET replay = false WHERE hash = $1', [hashKey(key)])
      }
    }
  }

  /** Keeps an unreadable delivery, unless it is there, and drops the oldest one above the limit. */
  async keepUnreadable({ body, ...unreadable }: UnreadableDelivery): Promise<void> {
    const key = unreadableKey(hash('sha256', body, 'base64url').slice(0, 22), unreadable.principal)
    await this.#tables.ask(
      `INSERT INTO $dead_letter (hash, dead_letter, body) VALUES ($1, $2, decode($3, 'base64')) ON CONFLICT DO NOTHING`,
      [hashKey(key), JSON.stringify({ ...unreadable, key }), toBase64(body)],
    )
    await this.#tables.ask(
      `DELETE FROM $dead_letter WHERE id = ANY (ARRAY(
         SELECT id FROM $dead_letter WHERE event_id IS NULL ORDER BY id DESC OFFSET ${maxUnreadable}))`,
    )
  }

  /**
   * Adds the media item to dead letters of a version 1 process, so that a search by media item finds them.
   * @returns `true` if there may be more
   */
  async updateOld(): Promise<boolean> {
    const rows = await this.#tables.ask<DeadLetterRow>(
      `SELECT ${columnsWithoutBody} FROM $dead_letter WHERE media IS NULL AND event_id IS NOT NULL
       ORDER BY id LIMIT ${oldPageSize}`,
    )
    if (rows.length === 0) return false
    await this.#tables.ask(
      `UPDATE $dead_letter SET media = given.media FROM unnest($1::bigint[], $2::bigint[]) AS given (id, media)
       WHERE dead_letter.id = given.id`,
      [rows.map(({ place }) => place), rows.map((row) => hashMedia(toDeadLetter(row).event?.mediaId ?? ''))],
    )
    return rows.length === oldPageSize
  }
}

function rethrow(error: unknown): never {
  throw error
}

/** Answers that a delivery was not replayed, because it still cannot be parsed. */
function ifMalformed(error: unknown): false {
  if (error instanceof WebhookError && error.code === 'malformed') return false
  throw error
}
