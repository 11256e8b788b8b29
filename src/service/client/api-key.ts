/**
 * The permissions of an API key. The names are documented, their meaning is not. Observed: a key with `only_upload`
 * gets `forbidden` from every method of this client.
 */
export type ApiKeyType = 'full_access' | 'only_upload'

/** An API key. Timestamps are the exact text the service sent. */
export interface ApiKey {
  readonly id: string
  readonly name?: string | undefined
  readonly publicKey?: string | undefined
  /** The secret half of the key. Sent only once, in the answer to `create`. */
  readonly secret?: string | undefined
  /** The shortened secret, to tell keys apart. */
  readonly truncatedSecret?: string | undefined
  /** The lifetime in seconds. Always a number, although the service was observed to send text. */
  readonly ttl?: number | undefined
  /** The permissions. The service may know more types. */
  readonly type?: ApiKeyType | (string & {}) | undefined
  /** The service's word, passed on as it is. Observed, not documented. */
  readonly status?: string | undefined
  readonly createdAt?: string | undefined
  readonly updatedAt?: string | undefined
  readonly expiredAt?: string | undefined
  /** When it was last used. Observed, not documented. */
  readonly lastRequestedAt?: string | undefined
}

/** An API key with its secret, as only `create` returns it. */
export interface CreatedApiKey extends ApiKey {
  readonly secret: string
}

/** The parameters of `client.apiKey.create`. The wire names were observed, not documented. */
export interface CreateApiKeyParams {
  /** Any text that is not blank. Observed limit: 100 characters. */
  readonly apiKeyName: string
  /** The lifetime in seconds, 1 to 2,147,483,647. The service's choice by default. */
  readonly ttl?: number | undefined
  /** The permissions. The service's choice by default. */
  readonly type?: ApiKeyType | undefined
}

/** What `update` changes of an API key. */
export interface UpdateApiKeyParams {
  /** The new name: any text that is not blank. Observed limit: 100 characters. */
  readonly apiKeyName: string
}

/** Parameters of `listAll` for API keys. */
export interface ListAllApiKeysParams {
  /** Lists only keys whose name contains this text. */
  readonly search?: string | undefined
  /** The field to sort by. `listAll` defaults to `created_at`. */
  readonly sortBy?: 'created_at' | 'name' | undefined
  /** The direction. `listAll` defaults to `asc`. */
  readonly orderBy?: 'asc' | 'desc' | undefined
}

/** The parameters of `client.apiKey.list`. The defaults are the service's. */
export interface ListApiKeysParams extends ListAllApiKeysParams {
  /** Keys to skip. */
  readonly offset?: number | undefined
  /** The page size, 1 or more. Observed maximum: 100. */
  readonly limit?: number | undefined
}
