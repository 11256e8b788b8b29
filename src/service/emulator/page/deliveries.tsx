import { Choice } from '../../../internal/page/fields.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { type Sending, sendingStates } from '../sending/sending.ts'
import { type PageState, webhookName } from './page-state.ts'
import { findPage, ListPager } from './pager.tsx'
import { SendingDetail, SendingRow } from './sending.tsx'

/** The sendings, newest first. The open one is always shown. */
export function Deliveries({ page }: { page: PageState }) {
  const { view, service } = page
  const all = service.outbox.list()
  const matching = all.filter(
    ({ state, webhookId }) => state === (view.state ?? state) && webhookId === (view.webhook ?? webhookId),
  )
  const { offset, limit, ...pager } = findPage(page, 'deliveries', matching.length, 50)
  const shown = matching.slice(offset, offset + limit)
  const open = view.sending === undefined ? undefined : service.outbox.get(view.sending)
  return (
    <Section id="deliveries" title="Deliveries" shows={['sendings', 'webhooks']}>
      <p class="quiet" data-news>
        {countStates(all)}
      </p>
      {all.length > 0 && <DeliveryFilter page={page} />}
      {shown.length === 0 && !open ? (
        <p class="quiet">
          {all.length === 0 ? 'Deliveries appear here as they happen.' : 'No delivery matches the filter.'}
        </p>
      ) : (
        <Table
          page={page}
          open={open}
          sendings={open && !shown.some(({ id }) => id === open.id) ? [open, ...shown] : shown}
        />
      )}
      <ListPager page={page} list="deliveries" {...pager} />
    </Section>
  )
}

interface TableProps {
  readonly page: PageState
  readonly sendings: readonly Sending[]
  readonly open: Sending | undefined
}

function Table({ page, sendings, open }: TableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Event</th>
          <th scope="col">Media</th>
          <th scope="col">Webhook</th>
          <th scope="col" class="number">
            Attempts
          </th>
          <th scope="col" class="number">
            Status
          </th>
          <th scope="col" class="number">
            Latency
          </th>
          <th scope="col" class="number">
            Time
          </th>
        </tr>
      </thead>
      <tbody>
        {sendings.map((sending) => (
          <>
            <SendingRow page={page} sending={sending} open={sending.id === open?.id} />
            {sending.id === open?.id && <SendingDetail page={page} sending={sending} />}
          </>
        ))}
      </tbody>
    </table>
  )
}

/** Counts sendings by state, such as `10 acknowledged, 2 failed`. */
function countStates(sendings: readonly Sending[]): string {
  const counts = new Map(sendingStates.map((state) => [state, 0]))
  for (const { state } of sendings) counts.set(state, (counts.get(state) ?? 0) + 1)
  return [...counts].flatMap(([state, count]) => (count > 0 ? `${count} ${state}` : [])).join(', ')
}

/** Filters the sendings. The script submits it, so its button is only for pages without one. */
function DeliveryFilter({ page }: { page: PageState }) {
  const { view, service } = page
  const { items } = service.workspace.webhooks.list({ limit: Number.POSITIVE_INFINITY, order_by: 'desc' })
  const names = new Map(items.map(({ id, name }) => [id, name]))
  // The chosen webhook may be deleted; its deliveries are still shown.
  if (view.webhook !== undefined) names.set(view.webhook, webhookName(page, view.webhook))
  return (
    <form method="get" action="/" id="delivery-filter" class="filter inline">
      <Choice
        label="State"
        name="state"
        value={view.state}
        options={[['', 'any'], ...sendingStates.map((state) => [state] as const)]}
      />
      <Choice label="Webhook" name="webhook" value={view.webhook} options={[['', 'any'], ...names]} />
      <button type="submit">Filter</button>
    </form>
  )
}
