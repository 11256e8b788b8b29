import { eventTypes, type FlagName, flagName } from '../../../events/media-service/catalogue.ts'
import { Field, Tick } from '../../../internal/page/fields.tsx'
import { Section } from '../../../internal/page/section.tsx'
import type { Behaviour } from '../sending/sending.ts'
import type { Webhook } from '../workspace/webhooks.ts'
import { BehaviourFields } from './behaviour-form.tsx'
import { Moment } from './elements.tsx'
import { ActionForm, Deletion, Disclosure } from './forms.tsx'
import { type PageState, typedInto } from './page-state.ts'
import { findPage, ListPager } from './pager.tsx'

export function Webhooks({ page }: { page: PageState }) {
  const { webhooks } = page.service.workspace
  const { offset, limit, ...pager } = findPage(page, 'webhooks', webhooks.list({ limit: 0 }).total, 10)
  const { items } = webhooks.list({ offset, limit, order_by: 'desc' })
  return (
    <Section id="webhooks" title="Webhooks" shows={['webhooks']}>
      {items.length > 0 && (
        <ul class="cards">
          {items.map((webhook) => (
            <WebhookCard page={page} webhook={webhook} />
          ))}
        </ul>
      )}
      <ListPager page={page} list="webhooks" {...pager} />
      <details id="new-webhook" class="card" open={items.length === 0 || page.formError?.action === 'webhooks'}>
        <summary>New webhook</summary>
        <ActionForm page={page} action="webhooks">
          <WebhookFields typed={typedInto(page, 'webhooks')} />
          <button type="submit" class="primary">
            Create webhook
          </button>
        </ActionForm>
      </details>
    </Section>
  )
}

interface WebhookCardProps {
  readonly page: PageState
  readonly webhook: Webhook
}

function WebhookCard({ page, webhook }: WebhookCardProps) {
  const { id, name, url, last_triggered_at: triggered } = webhook
  const behaviour = page.service.behaviourOf(id)
  return (
    <li id={`webhook-${id}`} class="card">
      <h3>{name}</h3>
      <p class="data">{url}</p>
      <p class="quiet">{listSubscriptions(webhook)}</p>
      {describe(behaviour) !== '' && <p class="quiet">Sends {describe(behaviour)}</p>}
      <p class="quiet">
        {triggered ? (
          <>
            Last triggered at <Moment at={new Date(triggered)} />
          </>
        ) : (
          'Never triggered'
        )}
      </p>
      <div class="row">
        <ActionForm page={page} action={`webhooks/${id}/check`} class="inline">
          <button type="submit">
            Check <span class="unseen">{name}</span>
          </button>
        </ActionForm>
        <Disclosure page={page} label="Edit" subject={name} action={`webhooks/${id}/edit`}>
          <ActionForm page={page} action={`webhooks/${id}/edit`}>
            <WebhookFields webhook={webhook} typed={typedInto(page, `webhooks/${id}/edit`)} />
            <button type="submit">Save</button>
          </ActionForm>
        </Disclosure>
        <Disclosure page={page} label="Behaviour" subject={name} action={`webhooks/${id}/behaviour`}>
          <ActionForm page={page} action={`webhooks/${id}/behaviour`}>
            <BehaviourFields behaviour={behaviour} typed={typedInto(page, `webhooks/${id}/behaviour`)} />
            <button type="submit">Save behaviour</button>
          </ActionForm>
        </Disclosure>
        <Deletion page={page} name={name} action={`webhooks/${id}/delete`} consequence="It receives no more events." />
      </div>
    </li>
  )
}

function listSubscriptions(webhook: Webhook): string {
  const types = eventTypes.filter((type) => webhook[flagName(type)])
  if (types.length === eventTypes.length) return 'All events'
  return types.join(', ') || 'No events'
}

/** Describes how a behaviour differs from the service's. */
function describe({ format = 'flat', sign, fault }: Behaviour): string {
  return [
    format === 'envelope' && 'in the envelope format',
    sign && `signed with ${sign.scheme}`,
    fault && `with the fault ${fault}`,
  ]
    .filter(Boolean)
    .join(', ')
}

interface WebhookFieldsProps {
  readonly webhook?: Webhook
  /** Rejected input, to show again. */
  readonly typed: URLSearchParams | undefined
}

/** A webhook's fields. A new one subscribes to all events. */
function WebhookFields({ webhook, typed }: WebhookFieldsProps) {
  const isSubscribed = (flag: FlagName): boolean => (typed ? typed.has(flag) : (webhook?.[flag] ?? true))
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
        {eventTypes.map((type) => (
          <Tick label={type} name={flagName(type)} checked={isSubscribed(flagName(type))} />
        ))}
      </fieldset>
    </>
  )
}
