import * as answers from './answers.ts'
import type {
  ApiKey,
  CreateApiKeyParams,
  CreatedApiKey,
  ListAllApiKeysParams,
  ListApiKeysParams,
  UpdateApiKeyParams,
} from './api-key.ts'
import type { Call, CallOptions } from './call.ts'
import { everyItem } from './pages.ts'
import { name, oneOf, paging, params, wholeNumber } from './params.ts'

/** The workspace's API keys. Every method rejects with an {@link ApiError}. */
export interface ApiKeys {
  /** Creates an API key. No later answer contains its `secret`. */
  create(
    params: CreateApiKeyParams,
    options?: CallOptions,
  ): Promise<{ status: string; data: { apiKey: CreatedApiKey } }>
  list(
    params?: ListApiKeysParams,
    options?: CallOptions,
  ): Promise<{ status: string; data: { apiKeys: ApiKey[]; total?: number | undefined } }>
  /** Iterates over all keys, oldest first by default, in pages of 100. Yields each key once. */
  listAll(params?: ListAllApiKeysParams, options?: CallOptions): AsyncGenerator<ApiKey, void, undefined>
  update(id: string, params: UpdateApiKeyParams, options?: CallOptions): Promise<answers.Done>
  /** Deletes an API key permanently. */
  delete(id: string, options?: CallOptions): Promise<answers.Done>
}

const fields = {
  id: answers.requiredText,
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
const createdApiKey = answers.record({ ...fields, secret: answers.requiredText })

const endpoints = {
  create: {
    name: 'apiKey.create',
    method: 'POST',
    path: '/api/api_keys',
    // Sent as a number, as documented, although the service was observed to answer with text.
    params: params({
      apiKeyName: name,
      ttl: wholeNumber(1, 2_147_483_647).optional(),
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
