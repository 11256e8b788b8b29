/**
 * The permissions of an API key. The two words are documented, and what they permit is not. Observed: a key with
 * `only_upload` cannot call the API of this client. It gets `forbidden`.
 */
export type ApiKeyType = 'full_access' | 'only_upload'

/** An API key, as the service describes it. Timestamps are the exact text that the service sent. */
export interface ApiKey {
  readonly id: string
  /** The name that was given to it, to tell keys apart. */
  readonly name?: string | undefined
  /** The public part of the key. */
  readonly publicKey?: string | undefined
  /** The secret part of the key. The service sends it once, in the answer to `create`. */
  readonly secret?: string | undefined
  /** A shortened form of the secret, to tell keys apart. */
  readonly truncatedSecret?: string | undefined
  /** The lifetime of the key, in seconds. A number, also if the service sends text, as was observed. */
  readonly ttl?: number | undefined
  /** The permissions of the key. The service can know more types. */
  readonly type?: ApiKeyType | (string & {}) | undefined
  /** A word of the service, passed on as it is. Observed, and not documented. */
  readonly status?: string | undefined
  /** The time of its creation. */
  readonly createdAt?: string | undefined
  /** The time of its last change. */
  readonly updatedAt?: string | undefined
  /** The time at which it expires. */
  readonly expiredAt?: string | undefined
  /** The time of its last use. Observed, and not documented. */
  readonly lastRequestedAt?: string | undefined
}

/** An API key in the answer to `create`, the only answer that contains its secret. */
export interface CreatedApiKey extends ApiKey {
  readonly secret: string
}

/** The parameters of `client.apiKey.create`. Their names on the wire are not documented. They were observed. */
export interface CreateApiKeyParams {
  /** Any text that is not blank. Observed: it may have 100 characters. */
  readonly apiKeyName: string
  /** The lifetime of the key in seconds, 1 to 2,147,483,647. The service chooses one if it is left out. */
  readonly ttl?: number | undefined
  /** The permissions of the key. The service chooses them if they are left out. */
  readonly type?: ApiKeyType | undefined
}

/** The parameters of `client.apiKey.update`. */
export interface UpdateApiKeyParams {
  /** The new name. Any text that is not blank. Observed: it may have 100 characters. */
  readonly apiKeyName: string
}

/** The parameters of `client.apiKey.listAll`: a filter and an order. */
export interface ListAllApiKeysParams {
  /** Lists only the keys with this text in their name. */
  readonly search?: string | undefined
  /** The field to sort by. `listAll` sorts by `created_at` unless told otherwise. */
  readonly sortBy?: 'created_at' | 'name' | undefined
  /** The direction of the order. `listAll` uses `asc` unless told otherwise. */
  readonly orderBy?: 'asc' | 'desc' | undefined
}

/** The parameters of `client.apiKey.list`: a filter, an order and a page. The service chooses what is left out. */
export interface ListApiKeysParams extends ListAllApiKeysParams {
  /** The number of keys to skip. */
  readonly offset?: number | undefined
  /** The size of the page, 1 or more. Its maximum is not documented. Observed: 100. */
  readonly limit?: number | undefined
}
