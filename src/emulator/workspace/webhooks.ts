import { randomUUID } from 'node:crypto'
import type { Changes } from '../shared/changes.ts'
import { apiTimestamp, type Clock } from '../shared/clock.ts'
import { Collection } from './collection.ts'
import { type Listed, type ListQuery, list } from './list.ts'

/** The flags by which a webhook subscribes to events, in the service's order. */
export const subscriptionFlags = [
  'file_received',
  'encoding_started',
  'partial_finished',
  'encoding_finished',
  'encoding_failed',
] as const

/** One of {@link subscriptionFlags}: the type of an event with an underscore for the dot. */
export type SubscriptionFlag = (typeof subscriptionFlags)[number]

/** A webhook as the API returns it. */
export interface Webhook extends Readonly<Record<SubscriptionFlag, boolean>> {
  readonly id: string
  readonly user_id: string
  readonly name: string
  /** May hold `user:password@`, and a secret in its query. */
  readonly url: string
  readonly created_at: string
  readonly updated_at: string
  /** `null` until a delivery was acknowledged. */
  readonly last_triggered_at: string | null
}

type Subscriptions = Partial<Readonly<Record<SubscriptionFlag, boolean>>>

/** What a webhook is made of. Events that are left out are not subscribed to. */
export type WebhookInput = Pick<Webhook, 'name' | 'url'> & Subscriptions

/** Which webhooks to list. */
export type WebhookQuery = ListQuery<'created_at' | 'name' | 'url'> & Subscriptions

/** The webhooks of a workspace. What it is given was checked before. */
export class Webhooks {
  readonly #userId: string
  readonly #clock: Clock
  readonly #records: Collection<Webhook>

  constructor(parts: { readonly userId: string; readonly clock: Clock; readonly changes: Changes }) {
    this.#userId = parts.userId
    this.#clock = parts.clock
    this.#records = new Collection('webhooks', parts.changes)
  }

  /** @throws WebhookError `invalid_option` when there is no room for one more */
  create({ name, url, ...subscriptions }: WebhookInput): Webhook {
    const now = this.#now()
    const webhook = {
      id: randomUUID(),
      user_id: this.#userId,
      name,
      url,
      file_received: false,
      encoding_started: false,
      partial_finished: false,
      encoding_finished: false,
      encoding_failed: false,
      ...subscriptions,
      created_at: now,
      updated_at: now,
      last_triggered_at: null,
    }
    this.#records.add(webhook)
    return webhook
  }

  list(query: WebhookQuery = {}): Listed<Webhook> {
    return list(this.#records.all(), query)
  }

  get(id: string): Webhook | undefined {
    return this.#records.get(id)
  }

  /** @returns the webhook as it is now, or `undefined` when there is none */
  update(id: string, patch: Partial<WebhookInput>): Webhook | undefined {
    return this.#records.update(id, { ...patch, updated_at: this.#now() })
  }

  /** @returns whether there was one */
  delete(id: string): boolean {
    return this.#records.delete(id)
  }

  subscribedTo(flag: SubscriptionFlag): Webhook[] {
    return this.#records.all().filter((webhook) => webhook[flag])
  }

  /** Notes that a delivery was acknowledged just now. */
  triggered(id: string): void {
    this.#records.update(id, { last_triggered_at: this.#now() })
  }

  #now(): string {
    return apiTimestamp(this.#clock())
  }
}
