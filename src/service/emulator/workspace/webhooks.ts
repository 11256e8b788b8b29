import { eventTypes, type FlagName, flagName } from '../../../events/media-service/catalogue.ts'
import type { Changes } from '../shared/changes.ts'
import { apiTimestamp, type Clock } from '../shared/clock.ts'
import { Collection } from './collection.ts'
import { type ListPage, type ListQuery, list } from './list.ts'

/** The subscription flags, in the service's order. */
export const subscriptionFlags: readonly FlagName[] = eventTypes.map(flagName)

export interface Webhook extends Readonly<Record<FlagName, boolean>> {
  readonly id: string
  readonly user_id: string
  readonly name: string
  /** May contain `user:password@`, and a secret in its query. */
  readonly url: string
  readonly created_at: string
  readonly updated_at: string
  /** When it was last triggered, or `null`. The profile decides what counts as triggered. */
  readonly last_triggered_at: string | null
}

type EventFlags = Partial<Readonly<Record<FlagName, boolean>>>

const noSubscriptions = Object.fromEntries(subscriptionFlags.map((flag) => [flag, false])) as Record<FlagName, boolean>

/** A new webhook. Flags default to false. */
export type WebhookInput = Pick<Webhook, 'name' | 'url'> & EventFlags

export type WebhookQuery = ListQuery<'created_at' | 'name' | 'url'> & EventFlags

export interface WebhooksOptions {
  readonly userId: string
  readonly clock: Clock
  readonly newId: () => string
  readonly changes: Changes
}

/** A workspace's webhooks. Expects validated input. */
export class Webhooks {
  readonly #userId: string
  readonly #clock: Clock
  readonly #newId: () => string
  readonly #records: Collection<Webhook>

  constructor(options: WebhooksOptions) {
    this.#userId = options.userId
    this.#clock = options.clock
    this.#newId = options.newId
    this.#records = new Collection('webhooks', options.changes)
  }

  /** @throws WebhookError `invalid_option` if the workspace is full */
  create({ name, url, ...subscriptions }: WebhookInput): Webhook {
    const now = this.#now()
    const webhook = {
      id: this.#newId(),
      user_id: this.#userId,
      name,
      url,
      ...noSubscriptions,
      ...subscriptions,
      created_at: now,
      updated_at: now,
      last_triggered_at: null,
    }
    this.#records.add(webhook)
    return webhook
  }

  list(query: WebhookQuery = {}): ListPage<Webhook> {
    return list(this.#records.all(), query)
  }

  get(id: string): Webhook | undefined {
    return this.#records.get(id)
  }

  /** @returns the updated webhook, or `undefined` if there is none */
  update(id: string, patch: Partial<WebhookInput>): Webhook | undefined {
    return this.#records.update(id, { ...patch, updated_at: this.#now() })
  }

  /** @returns `true` if the webhook existed */
  delete(id: string): boolean {
    return this.#records.delete(id)
  }

  subscribedTo(flag: FlagName): Webhook[] {
    return this.#records.all().filter((webhook) => webhook[flag])
  }

  triggered(id: string): void {
    this.#records.update(id, { last_triggered_at: this.#now() })
  }

  #now(): string {
    return apiTimestamp(this.#clock())
  }
}
