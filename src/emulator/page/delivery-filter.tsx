import { sendingStates } from '../sending/sending.ts'
import { Choice } from './field.tsx'
import type { PageState } from './page-state.ts'

/** Chooses which sendings are shown. A script does without its button. */
export function DeliveryFilter({ page: { view, parts } }: { page: PageState }) {
  const webhooks = parts.workspace.webhooks.list({ limit: 100, order_by: 'desc' }).items
  return (
    <form method="get" action="/" id="delivery-filter" class="filter inline">
      <Choice
        label="State"
        name="state"
        value={view.state}
        options={[['', 'any'], ...sendingStates.map((state) => [state] as const)]}
      />
      <Choice
        label="Webhook"
        name="webhook"
        value={view.webhook}
        options={[['', 'any'], ...webhooks.map(({ id, name }) => [id, name] as const)]}
      />
      <button type="submit">Filter</button>
    </form>
  )
}
