import type { Done } from './answers.ts'
import * as answers from './answers.ts'
import type { Call, CallOptions } from './call.ts'
import { everyItem } from './pages.ts'
import { name, oneOf, paging, params, wholeNumber } from './params.ts'

/** What a key may do. Those that can only upload are refused by the API of this client. */
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

/** The API keys of the service. Each method rejects with an {@link ApiError}. */
export interface ApiKeys {
  /** Creates a key. Its `secret` is in this answer only. */
  create(
    params: CreateApiKeyParams,
    options?: CallOptions,
  ): Promise<{ status: string; data: { apiKey: CreatedApiKey } }>
  /** One page of the keys. */
  list(
    params?: ListApiKeysParams,
    options?: CallOptions,
  ): Promise<{ status: string; data: { apiKeys: ApiKey[]; total?: number | undefined } }>
  /** Every key, page by page, the oldest first unless it is told otherwise. */
  listAll(params?: ListAllApiKeysParams, options?: CallOptions): AsyncGenerator<ApiKey, void, undefined>
  /** Renames a key. */
  update(id: string, params: UpdateApiKeyParams, options?: CallOptions): Promise<Done>
  delete(id: string, options?: CallOptions): Promise<Done>
}

const fields = {
  id: answers.needed,
  name: answers.text,
  publicKey: answers.text,
  secret: answers.text,
  truncatedSecret: answers.text,
  ttl: answers.wholeNumber,
  type: answers.text,
  status: answers.text,
  createdAt: answers.text,
  updatedAt: answers.text,
  expiredAt: answers.text,
  lastRequestedAt: answers.text,
}
const apiKey = answers.record(fields)
const createdApiKey = answers.record({ ...fields, secret: answers.needed })

const ttl = wholeNumber(1, 2_147_483_647)

const endpoints = {
  create: {
    name: 'apiKey.create',
    method: 'POST',
    path: '/api/api_keys',
    // The running service takes the ttl as a text.
    params: params({
      apiKeyName: name,
      ttl: ttl.transform(String).optional(),
      type: oneOf('full_access', 'only_upload').optional(),
    }),
    answer: answers.answerWith({ apiKey: createdApiKey }),
  },
  list: {
    name: 'apiKey.list',
    method: 'GET',
    path: '/api/api_keys',
    params: params({ ...paging, sortBy: oneOf('created_at', 'name').optional() }),
    answer: answers.answerWith({ apiKeys: answers.list(apiKey), total: answers.wholeNumber }),
  },
  update: {
    name: 'apiKey.update',
    method: 'PATCH',
    path: '/api/api_keys/{id}',
    params: params({ apiKeyName: name }),
    answer: answers.done,
  },
  delete: { name: 'apiKey.delete', method: 'DELETE', path: '/api/api_keys/{id}', answer: answers.done },
} as const

export function apiKeys(call: Call): ApiKeys {
  const list: ApiKeys['list'] = (params = {}, options) => call(endpoints.list, { ...options, params })
  return {
    list,
    create: (params, options) => call(endpoints.create, { ...options, params }),
    update: (id, params, options) => call(endpoints.update, { ...options, id, params }),
    delete: (id, options) => call(endpoints.delete, { ...options, id }),
    listAll: (params = {}, options) =>
      everyItem(async (range) => {
        const { data } = await list({ sortBy: 'created_at', orderBy: 'asc', ...params, ...range }, options)
        return { items: data.apiKeys, total: data.total }
      }),
  }
}
