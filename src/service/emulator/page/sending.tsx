import { durationText } from '../../../internal/duration.ts'
import { Fact, Facts } from '../../../internal/page/elements.tsx'
import { Choice } from '../../../internal/page/fields.tsx'
import { makeBody } from '../../../testing/payload.ts'
import type { Sending } from '../sending/sending.ts'
import { FaultSentences, faultChoices } from './behaviour-form.tsx'
import { Delivery } from './delivery.tsx'
import { Brief, Moment, StateMark } from './elements.tsx'
import { ActionForm, Disclosure } from './forms.tsx'
import { type PageState, typedInto, webhookName } from './page-state.ts'
import { addressOfSending, makeAddress } from './view.ts'

interface SendingRowProps {
  readonly page: PageState
  readonly sending: Sending
  readonly open: boolean
}

/** A table row. Its link opens and closes the details. */
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
          href={open ? makeAddress(page.view, { sending: undefined }) : addressOfSending(page.view, id)}
          aria-expanded={open ? 'true' : 'false'}
        >
          {payload.type}
        </a>
      </td>
      <td class="title">
        <Brief text={payload.title} />
      </td>
      <td class="name">
        <Brief text={webhookName(page, sending.webhookId)} />
      </td>
      <td class="minor number data" data-name="attempts">
        {deliveries.length}
      </td>
      <td class="number data" data-name="status">
        {last && (last.answer?.status ?? last.failure?.reason)}
      </td>
      <td class="minor number data" data-name="latency">
        {last && durationText(last.durationMs)}
      </td>
      <td class="number data">
        <Moment at={createdAt} />
      </td>
    </tr>
  )
}

export function SendingDetail({ page, sending }: { page: PageState; sending: Sending }) {
  const { id, payload, behaviour, url, state, deliveries } = sending
  const action = `sendings/${id}/repeat`
  return (
    <tr id={`detail-${id}`} class="detail">
      <td colspan={8} class="spaced">
        <Facts>
          <Fact name="To">
            <span class="data">{url}</span>
          </Fact>
          <Fact name="Sent">
            {[behaviour.format ?? 'flat', behaviour.sign?.scheme ?? 'unsigned', behaviour.fault ?? 'no fault'].join(
              ', ',
            )}
          </Fact>
          <Fact name="Emitted">
            <span class="data">{payload.emitted_at}</span>
          </Fact>
          <Fact name="Media">
            <span class="data">{payload.media_id}</span>
          </Fact>
        </Facts>
        <ActionForm page={page} action={action} class="inline">
          <Choice
            label="Fault"
            name="fault"
            value={typedInto(page, action)?.get('fault') ?? undefined}
            options={[['', 'the webhook’s own'], ['none'], ...faultChoices]}
          />
          <button type="submit">Repeat</button>
          <FaultSentences />
        </ActionForm>
        <EditedPayload page={page} sending={sending} />
        {deliveries.length === 0 && (
          <p class="quiet">{state === 'failed' ? 'No delivery was made.' : 'No delivery yet.'}</p>
        )}
        <ol>
          {deliveries.map((delivery, index) => (
            <Delivery id={`delivery-${id}-${index}`} delivery={delivery} first={deliveries[0]} />
          ))}
        </ol>
      </td>
    </tr>
  )
}

function EditedPayload({ page, sending: { id, payload, behaviour, body } }: { page: PageState; sending: Sending }) {
  const action = `sendings/${id}/edited`
  const sent = JSON.stringify(JSON.parse(body ?? makeBody(payload, behaviour.format)), null, 2)
  return (
    <Disclosure page={page} label="Edit and send again" subject={payload.type} action={action}>
      <ActionForm page={page} action={action}>
        <label class="field">
          <span>Payload</span>
          <textarea name="payload" rows={12} spellcheck={false} class="data">
            {typedInto(page, action)?.get('payload') ?? sent}
          </textarea>
        </label>
        <button type="submit">Send edited payload</button>
      </ActionForm>
    </Disclosure>
  )
}
