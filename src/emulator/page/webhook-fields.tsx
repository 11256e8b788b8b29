import { eventTypes } from '../../events/catalogue.ts'
import { type SubscriptionFlag, subscriptionFlags, type Webhook } from '../workspace/webhook.ts'
import { Field, Tick } from './field.tsx'

interface WebhookFieldsProps {
  readonly webhook?: Webhook
  /** What was typed before, if it was refused. */
  readonly typed: URLSearchParams | undefined
}

/** What a webhook is made of. A new one is subscribed to everything. */
export function WebhookFields({ webhook, typed }: WebhookFieldsProps) {
  const isSubscribed = (flag: SubscriptionFlag): boolean => (typed ? typed.has(flag) : (webhook?.[flag] ?? true))
  return (
    <>
      <Field
        label="URL"
        name="url"
        inputmode="url"
        required
        placeholder="http://127.0.0.1:3000/webhooks/media"
        value={typed?.get('url') ?? webhook?.url}
      />
      <Field label="Name" name="name" placeholder="optional" value={typed?.get('name') ?? webhook?.name} />
      <fieldset>
        <legend>Events</legend>
        {subscriptionFlags.map((flag, index) => (
          <Tick label={eventTypes[index] ?? flag} name={flag} checked={isSubscribed(flag)} />
        ))}
      </fieldset>
    </>
  )
}
