import type { Changes } from '../shared/changes.ts'
import { apiTimestamp, type Clock } from '../shared/clock.ts'
import { type ApiKeyStatus, truncateSecret } from '../shared/undocumented.ts'
import { Collection } from './collection.ts'
import { type ListPage, type ListQuery, list } from './list.ts'
import { randomText, SecretHash } from './secret.ts'

/** Every endpoint of this API rejects `only_upload` keys. */
export const apiKeyTypes = ['full_access', 'only_upload'] as const

export type ApiKeyType = (typeof apiKeyTypes)[number]

/** An API key. The profile decides which fields the API returns. */
export interface ApiKey {
  readonly id: string
  readonly name: string
  readonly public_key: string
  readonly truncated_secret: string
  /** Lifetime (seconds). */
  readonly ttl: number
  readonly type: ApiKeyType
  readonly status: ApiKeyStatus
  readonly created_at: string
  readonly updated_at: string
  readonly expired_at: string
  /** When the key was last used, or `null`. */
  readonly last_requested_at: string | null
}

export interface CreatedApiKey extends ApiKey {
  readonly secret: string
}

export interface ApiKeyInput {
  readonly name: string
  readonly ttl: number
  readonly type: ApiKeyType
}

/** Who the credentials belong to (key or account), or why they are rejected. */
export type Authentication = { readonly id: string; readonly type: ApiKeyType } | { readonly rejected: string }

interface StoredApiKey extends Omit<ApiKey, 'status'> {
  /** Nanoseconds since the epoch. */
  readonly expiresAt: bigint
  readonly secretHash: SecretHash
}

export interface ApiKeysOptions {
  readonly clock: Clock
  readonly newId: () => string
  readonly changes: Changes
}

/** A workspace's API keys. Expects validated input. */
export class ApiKeys {
  readonly #clock: Clock
  readonly #newId: () => string
  readonly #records: Collection<StoredApiKey>
  readonly #idByPublicKey = new Map<string, string>()

  constructor({ clock, newId, changes }: ApiKeysOptions) {
    this.#clock = clock
    this.#newId = newId
    this.#records = new Collection('api-keys', changes)
  }

  /** @throws WebhookError `invalid_option` if the workspace is full */
  create({ name, ttl, type }: ApiKeyInput): CreatedApiKey {
    const secret = randomText(32)
    const now = this.#clock()
    const expiresAt = now + BigInt(ttl) * 1_000_000_000n
    const stored = {
      id: this.#newId(),
      name,
      public_key: randomText(16),
      truncated_secret: truncateSecret(secret),
      ttl,
      type,
      created_at: apiTimestamp(now),
      updated_at: apiTimestamp(now),
      expired_at: apiTimestamp(expiresAt),
      last_requested_at: null,
      expiresAt,
      secretHash: new SecretHash(secret),
    }
    this.#records.add(stored)
    this.#idByPublicKey.set(stored.public_key, stored.id)
    return { ...this.#toApiKey(stored), secret }
  }

  list(query: ListQuery<'created_at' | 'name'> = {}): ListPage<ApiKey> {
    return list(
      this.#records.all().map((stored) => this.#toApiKey(stored)),
      query,
    )
  }

  /** @returns `true` if the key exists */
  rename(id: string, name: string): boolean {
    return this.#records.update(id, { name, updated_at: apiTimestamp(this.#clock()) }) !== undefined
  }

  /** @returns `true` if the key existed */
  delete(id: string): boolean {
    this.#idByPublicKey.delete(this.#records.get(id)?.public_key ?? '')
    return this.#records.delete(id)
  }

  /** Finds the key for the credentials and records its use. */
  authenticate(publicKey: string, secret: string): Authentication {
    const stored = this.#records.get(this.#idByPublicKey.get(publicKey) ?? '')
    if (!stored?.secretHash.matches(secret)) return { rejected: 'wrong public key or secret key' }
    if (this.#isExpired(stored)) return { rejected: 'the API key has expired' }
    this.#records.update(stored.id, { last_requested_at: apiTimestamp(this.#clock()) })
    return stored
  }

  #isExpired({ expiresAt }: StoredApiKey): boolean {
    return this.#clock() >= expiresAt
  }

  #toApiKey(stored: StoredApiKey): ApiKey {
    const { expiresAt, secretHash, ...key } = stored
    return { ...key, status: this.#isExpired(stored) ? 'expired' : 'active' }
  }
}
