import { answerAsObject, type ObjectSql, type ObjectState } from '../../storage/durable-objects.ts'
import type { Claim } from '../store.ts'

export interface KeyInput {
  readonly key: string
  readonly owner: string
}

export interface LeaseInput extends KeyInput {
  readonly leaseMs: number
}

export interface ClaimInput extends LeaseInput {
  /** Unique to the claim. */
  readonly claim: string
}

interface KeyRow {
  readonly owner: string
  readonly claim: string
  readonly done: number
  readonly expires_at: number
}

/** The pause between two clean-ups, in ms, and the number of keys that one removes: an object gets fewer in that time. */
const cleanUp = { delayMs: 1_000, keys: 1_000 }

/**
 * A Durable Object that keeps a part of the keys of `durableObjectStore`. Export it from the Worker's module, under the
 * name that the configuration has. It needs SQLite: `new_sqlite_classes`.
 */
export class StoreObject {
  /** Never set: the types of Cloudflare require it of the class that a `DurableObjectNamespace` names. */
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

  /** Called by `durableObjectStore`. Each step is synchronous, so no other one comes in between. */
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

  /** Finishes a key, unless another owner holds it or has finished it. Its owner can finish it again, after a replay. */
  #complete(input: LeaseInput): boolean {
    const held = this.#get(input.key)
    if (held !== undefined && held.owner !== input.owner) return false
    this.#put({ claim: held?.claim ?? '', ...input }, 1)
    return true
  }

  /** Keeps a key for its owner, unless another one holds it or it is finished. */
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

  /** Removes some expired keys. Their owners may still renew them: renewing works also for a key that no owner has. */
  #removeExpired(): void {
    const now = Date.now()
    if (now < this.#cleanUpAt) return
    this.#cleanUpAt = now + cleanUp.delayMs
    const expired = `SELECT key FROM store_key WHERE expires_at < ? ORDER BY expires_at LIMIT ${cleanUp.keys}`
    this.#sql.exec(`DELETE FROM store_key WHERE key IN (${expired})`, now)
  }
}

/** The JSON of a key, since lone surrogates would all become one character. */
const stored = (key: string): string => JSON.stringify(key)
