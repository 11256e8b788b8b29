import type { Changes } from './changes.ts'
import type { Media, MediaInput } from './media/media.ts'
import type { Studio } from './media/studio.ts'
import type { Credentials } from './options.ts'
import type { Outbox } from './sending/outbox.ts'
import type { Profile } from './sending/profile.ts'
import type { Behaviour, DeliveryRecord, Sending } from './sending/sending.ts'
import type { Webhook } from './workspace/webhook.ts'
import type { Workspace } from './workspace/workspace.ts'

/** What an emulator is made of, as its own HTTP interface and its page use it. */
export interface Parts {
  readonly profile: Profile
  readonly timeScale: number
  readonly credentials: Credentials
  readonly workspace: Workspace
  readonly outbox: Outbox
  readonly studio: Studio
  readonly changes: Changes
  /**
   * Uploads a media.
   * @param input is checked here, so it may come from outside
   * @throws WebhookError `invalid_option`, or `overloaded` when too many events wait
   */
  addMedia(input?: MediaInput): Media
  /** How events are sent to a webhook: `{}` unless it was set. */
  behaviourOf(webhookId: string): Behaviour
  /**
   * Sets how events are sent to a webhook from now on.
   * @param behaviour is checked here, so it may come from outside
   * @throws WebhookError `invalid_option` for a webhook that does not exist, or a behaviour that makes no sense
   */
  behave(webhookId: string, behaviour: Behaviour): void
  /** Makes the test delivery. */
  check(webhook: Webhook): Promise<DeliveryRecord>
  /**
   * Sends the event of a sending once more, to the webhook as it is now.
   * @param behaviour is checked here, so it may come from outside; by default that of the webhook
   * @throws WebhookError `invalid_option` when there is no such sending, its webhook was deleted, or the behaviour makes
   * no sense; `overloaded` when too many events wait
   */
  repeat(sendingId: string, behaviour?: Behaviour): Sending
  /** Resolves when every media has come to its end and every event has been acknowledged or given up. */
  settled(options?: { readonly timeoutMs?: number }): Promise<void>
}
