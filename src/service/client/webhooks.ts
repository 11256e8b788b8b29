import * as answers from './answers.ts'
import type { Call, CallOptions } from './call.ts'
import { everyItem } from './pages.ts'
import { flag, httpUrl, name, oneOf, paging, params, wholeNumber } from './params.ts'
import { subscriptions } from './subscriptions.ts'
import type {
  CreateWebhookParams,
  ListAllWebhooksParams,
  ListWebhooksParams,
  UpdateWebhookParams,
  Webhook,
} from './webhook.ts'

/** The workspace's webhooks. Every method rejects with an {@link ApiError}. */
export interface Webhooks {
  /** Creates a webhook. Observed, not documented: the service rejects one without event types. */
  create(params: CreateWebhookParams, options?: CallOptions): Promise<{ status: string; data: { webhook: Webhook } }>
  get(id: string, options?: CallOptions): Promise<{ status: string; data: { webhook: Webhook } }>
  list(
    params?: ListWebhooksParams,
    options?: CallOptions,
  ): Promise<{ status: string; data: { webhooks: Webhook[]; total?: number | undefined } }>
  /** Iterates over all webhooks, oldest first by default, in pages of 100. Yields each one once. */
  listAll(params?: ListAllWebhooksParams, options?: CallOptions): AsyncGenerator<Webhook, void, undefined>
  /** Changes the given fields, at least one. */
  update(id: string, params: UpdateWebhookParams, options?: CallOptions): Promise<answers.Done>
  /** Deletes a webhook permanently. */
  delete(id: string, options?: CallOptions): Promise<answers.Done>
  /**
   * Makes the service send a test delivery to the webhook's URL. Never retried.
   *
   * Observed, not documented: rejects unless the receiver answers 200 within 1 s, and with the receiver's own status:
   * `unauthorized` may mean that your receiver answered 401.
   */
  check(id: string, options?: CallOptions): Promise<answers.Done>
}

const webhook = answers.record({
  id: answers.requiredText,
  userId: answers.text,
  name: answers.text,
  url: answers.text,
  ...subscriptions(() => answers.flag),
  createdAt: answers.text,
  updatedAt: answers.text,
  lastTriggeredAt: answers.text,
})

const flags = subscriptions(() => flag.optional())
const changes = { url: httpUrl.optional(), name: name.optional(), ...flags }

const endpoints = {
  create: {
    name: 'webhook.create',
    method: 'POST',
    path: '/api/webhooks',
    params: params({ ...changes, url: httpUrl }),
    answer: answers.answerWith({ webhook }),
  },
  get: {
    name: 'webhook.get',
    method: 'GET',
    path: '/api/webhooks/{id}',
    answer: answers.answerWith({ webhook }),
  },
  list: {
    name: 'webhook.list',
    method: 'GET',
    path: '/api/webhooks',
    params: params({
      ...paging,
      limit: wholeNumber(1, 100).optional(),
      sortBy: oneOf('created_at', 'url', 'name').optional(),
      ...flags,
    }),
    answer: answers.answerWith({ webhooks: answers.list(webhook), total: answers.wholeNumber }),
  },
  update: {
    name: 'webhook.update',
    method: 'PATCH',
    path: '/api/webhooks/{id}',
    params: params(changes).refine((given) => Object.values(given).some((value) => value !== undefined), {
      error: `are empty; there are ${Object.keys(changes).join(', ')}`,
    }),
    answer: answers.done,
  },
  delete: { name: 'webhook.delete', method: 'DELETE', path: '/api/webhooks/{id}', answer: answers.done },
  // The answer's status may be the receiver's own. Repeating it would send another delivery.
  check: {
    name: 'webhook.check',
    method: 'POST',
    path: '/api/webhooks/check/{id}',
    once: true,
    answer: answers.confirmed,
  },
} as const

export function webhooks(call: Call): Webhooks {
  const list: Webhooks['list'] = (params = {}, options) => call(endpoints.list, { ...options, params })
  return {
    list,
    create: (params, options) => call(endpoints.create, { ...options, params }),
    get: (id, options) => call(endpoints.get, { ...options, id }),
    update: (id, params, options) => call(endpoints.update, { ...options, id, params }),
    delete: (id, options) => call(endpoints.delete, { ...options, id }),
    check: (id, options) => call(endpoints.check, { ...options, id }),
    listAll: (params = {}, options) =>
      everyItem(async (range) => {
        const { data } = await list({ sortBy: 'created_at', orderBy: 'asc', ...params, ...range }, options)
        return { items: data.webhooks, total: data.total }
      }),
  }
}
