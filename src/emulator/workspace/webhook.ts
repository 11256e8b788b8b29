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
