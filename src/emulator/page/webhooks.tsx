import { ActionForm } from './action-form.tsx'
import { type PageState, typedInto } from './page-state.ts'
import { Pager, pageOf } from './pager.tsx'
import { Section } from './section.tsx'
import { WebhookCard } from './webhook-card.tsx'
import { WebhookFields } from './webhook-fields.tsx'

/** The webhooks, the newest one first, and a form for one more. */
export function Webhooks({ page }: { page: PageState }) {
  const { webhooks } = page.parts.workspace
  const { offset, limit, ...pager } = pageOf(page, 'webhooks', webhooks.list({ limit: 0 }).total, 10)
  const { items } = webhooks.list({ offset, limit, order_by: 'desc' })
  return (
    <Section id="webhooks" title="Webhooks" of={['webhooks']}>
      {items.length > 0 && (
        <ul class="cards">
          {items.map((webhook) => (
            <WebhookCard page={page} webhook={webhook} />
          ))}
        </ul>
      )}
      <Pager page={page} list="webhooks" {...pager} />
      <details id="new-webhook" class="card" open={items.length === 0 || page.refusal?.action === 'webhooks'}>
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
