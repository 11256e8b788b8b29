import type { ApiKeyStatus } from '../shared/undocumented.ts'

/** What an API key may be used for. Those of type `only_upload` are refused by every endpoint of this API. */
export const apiKeyTypes = ['full_access', 'only_upload'] as const

/** One of {@link apiKeyTypes}. */
export type ApiKeyType = (typeof apiKeyTypes)[number]

/** An API key as the API returns it. */
export interface ApiKey {
  readonly id: string
  readonly name: string
  readonly public_key: string
  readonly truncated_secret: string
  /** Lifetime in seconds, in decimal digits. */
  readonly ttl: string
  readonly type: ApiKeyType
  readonly status: ApiKeyStatus
  readonly created_at: string
  readonly updated_at: string
  readonly expired_at: string
  /** `null` until a request was made with it. */
  readonly last_requested_at: string | null
}

/** An API key as it is returned once, when it is created. */
export interface CreatedApiKey extends ApiKey {
  readonly secret: string
}
