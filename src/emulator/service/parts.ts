import type { Studio } from '../media/studio.ts'
import type { Outbox } from '../sending/outbox.ts'
import type { Profile } from '../sending/profile.ts'
import type { Behaviour, DeliveryRecord } from '../sending/sending.ts'
import type { Changes } from '../shared/changes.ts'
import type { Webhook } from '../workspace/webhook.ts'
import type { Workspace } from '../workspace/workspace.ts'
import type { Emulator } from './options.ts'

/**
 * What an emulator is made of, as its own HTTP interface and its page use it. What the methods of {@link Emulator} take
 * is checked by them, so it may come from outside.
 */
export interface Parts extends Pick<Emulator, 'credentials' | 'addMedia' | 'behave' | 'repeat' | 'settled'> {
  readonly profile: Profile
  readonly timeScale: number
  readonly workspace: Workspace
  readonly outbox: Outbox
  readonly studio: Studio
  readonly changes: Changes
  /** How events are sent to a webhook: `{}` unless it was set. */
  behaviourOf(webhookId: string): Behaviour
  /** Makes the test delivery. */
  check(webhook: Webhook): Promise<DeliveryRecord>
}
