import type { Sending } from '../sending/sending.ts'
import { duration, Moment } from './moment.tsx'
import type { PageState } from './page-state.ts'
import { StateMark } from './sending-state.tsx'
import { addressOf, addressOfSending } from './view.ts'
import { webhookName } from './webhook-name.ts'

interface SendingRowProps {
  readonly page: PageState
  readonly sending: Sending
  readonly open: boolean
}

/** A sending in a line, which leads to all of it and back. */
export function SendingRow({ page, sending, open }: SendingRowProps) {
  const { id, payload, deliveries, state, createdAt } = sending
  const last = deliveries.at(-1)
  return (
    <tr id={`sending-${id}`} class={open ? 'sending open' : 'sending'}>
      <td>
        <StateMark state={state} />
      </td>
      <td class="event data">
        <a
          href={open ? addressOf(page.view, { sending: undefined }) : addressOfSending(page.view, id)}
          aria-expanded={open ? 'true' : 'false'}
        >
          {payload.type}
        </a>
      </td>
      <td class="title">{payload.title}</td>
      <td class="title">{webhookName(page, sending.webhookId)}</td>
      <td class="minor number data" data-name="attempts">
        {deliveries.length}
      </td>
      <td class="number data" data-name="status">
        {last && (last.answer?.status ?? last.failure?.reason)}
      </td>
      <td class="minor number data" data-name="latency">
        {last && duration(last.durationMs)}
      </td>
      <td class="number data">
        <Moment at={createdAt} />
      </td>
    </tr>
  )
}
