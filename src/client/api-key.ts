/** What a key may do. Those that can only upload are rejected by the API of this client. */
export type ApiKeyType = 'full_access' | 'only_upload'

/** An API key, as far as the service tells of it. Timestamps are the exact text it sent. */
export interface ApiKey {
  readonly id: string
  readonly name?: string | undefined
  readonly publicKey?: string | undefined
  /** The secret part, in the answer to `create` and never again. */
  readonly secret?: string | undefined
  readonly truncatedSecret?: string | undefined
  /** In seconds. */
  readonly ttl?: number | undefined
  readonly type?: ApiKeyType | (string & {}) | undefined
  readonly status?: string | undefined
  readonly createdAt?: string | undefined
  readonly updatedAt?: string | undefined
  readonly expiredAt?: string | undefined
  readonly lastRequestedAt?: string | undefined
}

/** An API key in the answer to `create`. */
export interface CreatedApiKey extends ApiKey {
  readonly secret: string
}

export interface CreateApiKeyParams {
  /** 1 to 100 characters. */
  readonly apiKeyName: string
  /** Lifetime in seconds, 1 to 2,147,483,647; what it is otherwise is the service's choice. */
  readonly ttl?: number | undefined
  /** What it is otherwise is the service's choice. */
  readonly type?: ApiKeyType | undefined
}

export interface UpdateApiKeyParams {
  /** 1 to 100 characters. */
  readonly apiKeyName: string
}

/** Which keys, and in which order. */
export interface ListAllApiKeysParams {
  /** Only those with this in their name. */
  readonly search?: string | undefined
  readonly sortBy?: 'created_at' | 'name' | undefined
  readonly orderBy?: 'asc' | 'desc' | undefined
}

export interface ListApiKeysParams extends ListAllApiKeysParams {
  /** How many to skip. */
  readonly offset?: number | undefined
  /** 1 to 100. */
  readonly limit?: number | undefined
}
