import { eventTypes } from '../../events/catalogue.ts'
import type { Behaviour } from '../sending/sending.ts'
import { subscriptionFlags, type Webhook } from '../workspace/webhook.ts'
import { ActionForm } from './action-form.tsx'
import { BehaviourFields } from './behaviour-fields.tsx'
import { Deletion } from './deletion.tsx'
import { Disclosure } from './disclosure.tsx'
import { Moment } from './moment.tsx'
import { type PageState, typedInto } from './page-state.ts'
import { WebhookFields } from './webhook-fields.tsx'

interface WebhookCardProps {
  readonly page: PageState
  readonly webhook: Webhook
}

/** A webhook, and what can be done with it. */
export function WebhookCard({ page, webhook }: WebhookCardProps) {
  const { id, name, url, last_triggered_at: triggered } = webhook
  const behaviour = page.parts.behaviourOf(id)
  return (
    <li id={`webhook-${id}`} class="card">
      <h3>{name}</h3>
      <p class="data">{url}</p>
      <p class="quiet">{subscriptionsOf(webhook)}</p>
      {describe(behaviour) !== '' && <p class="quiet">Sends {describe(behaviour)}</p>}
      <p class="quiet">
        {triggered ? (
          <>
            Last delivered at <Moment at={new Date(triggered)} />
          </>
        ) : (
          'Nothing delivered yet'
        )}
      </p>
      <div class="row">
        <ActionForm page={page} action={`webhooks/${id}/check`} class="inline">
          <button type="submit">
            Check <span class="unseen">{name}</span>
          </button>
        </ActionForm>
        <Disclosure page={page} words="Edit" of={name} action={`webhooks/${id}/edit`}>
          <ActionForm page={page} action={`webhooks/${id}/edit`}>
            <WebhookFields webhook={webhook} typed={typedInto(page, `webhooks/${id}/edit`)} />
            <button type="submit">Save</button>
          </ActionForm>
        </Disclosure>
        <Disclosure page={page} words="Behaviour" of={name} action={`webhooks/${id}/behaviour`}>
          <ActionForm page={page} action={`webhooks/${id}/behaviour`}>
            <BehaviourFields behaviour={behaviour} typed={typedInto(page, `webhooks/${id}/behaviour`)} />
            <button type="submit">Save behaviour</button>
          </ActionForm>
        </Disclosure>
        <Deletion page={page} name={name} action={`webhooks/${id}/delete`} consequence="It is sent nothing more." />
      </div>
    </li>
  )
}

function subscriptionsOf(webhook: Webhook): string {
  const types = eventTypes.filter((_, index) => webhook[subscriptionFlags[index] as keyof Webhook])
  if (types.length === eventTypes.length) return 'All events'
  return types.join(', ') || 'No events'
}

/** What is not as the service does it. */
function describe({ format = 'flat', sign, fault }: Behaviour): string {
  return [
    format === 'envelope' && 'in the envelope format',
    sign && `signed: ${sign.scheme}`,
    fault && `with a fault: ${fault}`,
  ]
    .filter(Boolean)
    .join(', ')
}
