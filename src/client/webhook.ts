import type { Subscriptions } from './subscriptions.ts'

/** A webhook, as the service describes it. Timestamps are the exact text that the service sent. */
export interface Webhook extends Subscriptions {
  readonly id: string
  /** The id of the account that it belongs to. */
  readonly userId?: string | undefined
  /** The name that was given to it, or that the service chose. */
  readonly name?: string | undefined
  /** The URL that receives the events. It can contain a secret: `user:password@`, or a token. */
  readonly url?: string | undefined
  /** The time of its creation. */
  readonly createdAt?: string | undefined
  /** The time of its last change. */
  readonly updatedAt?: string | undefined
  /**
   * The time of its last trigger, as documented. In the running service it was observed to be that of the last delivery that
   * was acknowledged.
   */
  readonly lastTriggeredAt?: string | undefined
}

/**
 * The parameters of `client.webhook.create`. The value of an event type that is left out is not documented. Observed: it is
 * `false`, and at least one must be `true`.
 */
export interface CreateWebhookParams extends Subscriptions {
  /** Any http or https URL. */
  readonly url: string
  /** Any text that is not blank. The service chooses a name if it is left out. Observed: it may have 100 characters. */
  readonly name?: string | undefined
}

/** The parameters of `client.webhook.update`: the fields to change, at least one. */
export interface UpdateWebhookParams extends Subscriptions {
  /** Any http or https URL. */
  readonly url?: string | undefined
  /** Any text that is not blank. Observed: it may have 100 characters. */
  readonly name?: string | undefined
}

/** The parameters of `client.webhook.listAll`: a filter by name and event types, and an order. */
export interface ListAllWebhooksParams extends Subscriptions {
  /** Lists only the webhooks with this text in their name. */
  readonly search?: string | undefined
  /** @defaultValue 'created_at' */
  readonly sortBy?: 'created_at' | 'url' | 'name' | undefined
  /** @defaultValue 'asc' */
  readonly orderBy?: 'asc' | 'desc' | undefined
}

/** The parameters of `client.webhook.list`: a filter, an order and a page. */
export interface ListWebhooksParams extends ListAllWebhooksParams {
  /**
   * The number of webhooks to skip.
   * @defaultValue 0
   */
  readonly offset?: number | undefined
  /**
   * The size of the page, 1 to 100.
   * @defaultValue 25
   */
  readonly limit?: number | undefined
}
