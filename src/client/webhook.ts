/** Which events a webhook is sent: the types of the events, in the API's words. */
export interface Subscriptions {
  readonly fileReceived?: boolean | undefined
  readonly encodingStarted?: boolean | undefined
  readonly partialFinished?: boolean | undefined
  readonly encodingFinished?: boolean | undefined
  readonly encodingFailed?: boolean | undefined
}

/** A webhook, as far as the service tells of it. Timestamps are the exact text it sent. */
export interface Webhook extends Subscriptions {
  readonly id: string
  readonly userId?: string | undefined
  readonly name?: string | undefined
  /** May hold a secret: `user:password@`, or a token. */
  readonly url?: string | undefined
  readonly createdAt?: string | undefined
  readonly updatedAt?: string | undefined
  readonly lastTriggeredAt?: string | undefined
}

export interface CreateWebhookParams extends Subscriptions {
  /** Any http or https URL. */
  readonly url: string
  /** 1 to 100 characters; the service gives it one if it has none. */
  readonly name?: string | undefined
}

export interface UpdateWebhookParams extends Subscriptions {
  /** Any http or https URL. */
  readonly url?: string | undefined
  /** 1 to 100 characters. */
  readonly name?: string | undefined
}

/** Which webhooks, by their flags and name, and in which order. */
export interface ListAllWebhooksParams extends Subscriptions {
  /** Only those with this in their name. */
  readonly search?: string | undefined
  /** @defaultValue 'created_at' */
  readonly sortBy?: 'created_at' | 'url' | 'name' | undefined
  /** @defaultValue 'asc' */
  readonly orderBy?: 'asc' | 'desc' | undefined
}

export interface ListWebhooksParams extends ListAllWebhooksParams {
  /**
   * How many to skip.
   * @defaultValue 0
   */
  readonly offset?: number | undefined
  /**
   * 1 to 100.
   * @defaultValue 25
   */
  readonly limit?: number | undefined
}
