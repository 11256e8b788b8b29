import { answerAsObject, type ObjectSql, type ObjectState } from '../../internal/storage/durable-objects.ts'
import type { Claim } from '../store.ts'

export interface KeyInput {
  readonly key: string
  readonly owner: string
}

export interface LeaseInput extends KeyInput {
  readonly leaseMs: number
}

export interface ClaimInput extends LeaseInput {
  readonly claim: string
}

interface KeyRow {
  readonly owner: string
  readonly claim: string
  readonly done: number
  readonly expires_at: number
}

/** Delay between clean-ups (ms), and keys removed by each: more than an object gets in that time. */
const cleanUp = { delayMs: 1_000, keys: 1_000 }

/**
 * A Durable Object that holds one shard of the keys of `durableObjectStore`. Export it from the Worker's module under
 * its configured class name. Needs SQLite: `new_sqlite_classes`.
 */
export class StoreObject {
  /** Never set; Cloudflare's `DurableObjectNamespace` type requires it. */
  declare readonly __DURABLE_OBJECT_BRAND: never
  readonly #sql: ObjectSql
  #cleanUpAt = 0

  constructor(state: ObjectState) {
    this.#sql = state.storage.sql
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS store_key (
        key TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        claim TEXT NOT NULL,
        done INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX IF NOT EXISTS store_key_expires_at ON store_key (expires_at);
    `)
  }

  /** Called by `durableObjectStore`. Steps are synchronous, hence atomic. */
  fetch(request: Request): Promise<Response> {
    return answerAsObject(request, () => ({
      claim: (input: ClaimInput) => this.#claim(input),
      renew: (input: LeaseInput) => this.#renew(input),
      complete: (input: LeaseInput) => this.#complete(input),
      release: (input: KeyInput) => this.#release(input),
    }))
  }

  #claim(input: ClaimInput): Claim {
    this.#removeExpired()
    const held = this.#get(input.key)
    const isLive = held !== undefined && held.expires_at > Date.now()
    if (isLive && held.done === 1) return 'done'
    if (isLive && held.claim !== input.claim) return 'in-progress'
    if (!isLive) this.#put(input, 0)
    return 'claimed'
  }

  /** Unless another owner holds or finished it. Idempotent for its owner. */
  #complete(input: LeaseInput): boolean {
    const held = this.#get(input.key)
    if (held !== undefined && held.owner !== input.owner) return false
    this.#put({ claim: held?.claim ?? '', ...input }, 1)
    return true
  }

  /** Unless another owner holds it, or it is finished. */
  #renew(input: LeaseInput): boolean {
    const held = this.#get(input.key)
    if (held !== undefined && (held.done === 1 || held.owner !== input.owner)) return false
    this.#put({ claim: held?.claim ?? '', ...input }, 0)
    return true
  }

  #release({ key, owner }: KeyInput): boolean {
    const held = this.#get(key)
    if (held === undefined || held.done === 1 || held.owner !== owner) return false
    this.#sql.exec('DELETE FROM store_key WHERE key = ?', stored(key))
    return true
  }

  #get(key: string): KeyRow | undefined {
    const query = 'SELECT owner, claim, done, expires_at FROM store_key WHERE key = ?'
    return this.#sql.exec(query, stored(key)).toArray()[0] as unknown as KeyRow | undefined
  }

  #put({ key, owner, claim, leaseMs }: ClaimInput, done: 0 | 1): void {
    const expiresAt = Date.now() + leaseMs
    this.#sql.exec(
      'INSERT OR REPLACE INTO store_key VALUES (?, ?, ?, ?, ?)',
      stored(key),
      owner,
      claim,
      done,
      expiresAt,
    )
  }

  /** Removes a batch of expired keys. Safe while their owners still renew: renewing a missing key works. */
  #removeExpired(): void {
    const now = Date.now()
    if (now < this.#cleanUpAt) return
    this.#cleanUpAt = now + cleanUp.delayMs
    const expired = `SELECT key FROM store_key WHERE expires_at < ? ORDER BY expires_at LIMIT ${cleanUp.keys}`
    this.#sql.exec(`DELETE FROM store_key WHERE key IN (${expired})`, now)
  }
}

/** JSON, because SQLite's UTF-8 maps all lone surrogates to one character. */
const stored = (key: string): string => JSON.stringify(key)
