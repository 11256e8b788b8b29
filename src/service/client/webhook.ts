import type { Subscriptions } from './subscriptions.ts'

/** A webhook. Timestamps are the exact text the service sent. */
export interface Webhook extends Subscriptions {
  readonly id: string
  readonly userId?: string | undefined
  /** The name you gave it, or the service's choice. */
  readonly name?: string | undefined
  /** The receiver's URL. May contain a secret: `user:password@`, or a token. */
  readonly url?: string | undefined
  readonly createdAt?: string | undefined
  readonly updatedAt?: string | undefined
  /** When it was last triggered, according to the documentation. Observed: when a delivery was last acknowledged. */
  readonly lastTriggeredAt?: string | undefined
}

/** Observed, not documented: event types default to `false`, and at least one must be `true`. */
export interface CreateWebhookParams extends Subscriptions {
  /** Any http or https URL. */
  readonly url: string
  /** Any text that is not blank. The service's choice by default. Observed limit: 100 characters. */
  readonly name?: string | undefined
}

/** The parameters of `client.webhook.update`: at least one field. */
export interface UpdateWebhookParams extends Subscriptions {
  readonly url?: string | undefined
  /** Any text that is not blank. Observed limit: 100 characters. */
  readonly name?: string | undefined
}

/** The parameters of `client.webhook.listAll`. The flags filter by event type. */
export interface ListAllWebhooksParams extends Subscriptions {
  /** Lists only webhooks whose name contains this text. */
  readonly search?: string | undefined
  /** @defaultValue 'created_at' */
  readonly sortBy?: 'created_at' | 'url' | 'name' | undefined
  /** @defaultValue 'asc' */
  readonly orderBy?: 'asc' | 'desc' | undefined
}

/** Parameters of `list` for webhooks: one page. */
export interface ListWebhooksParams extends ListAllWebhooksParams {
  /** @defaultValue 0 */
  readonly offset?: number | undefined
  /**
   * The page size, 1 to 100.
   * @defaultValue 25
   */
  readonly limit?: number | undefined
}
