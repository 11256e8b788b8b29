import type { Sending } from '../sending/sending.ts'
import { ActionForm } from './action-form.tsx'
import { faultChoices } from './behaviour-fields.tsx'
import { Delivery } from './delivery.tsx'
import { Fact, Facts } from './facts.tsx'
import { Choice } from './field.tsx'
import { type PageState, typedInto } from './page-state.ts'

/** All of a sending: each of its deliveries, and what can be done with it. */
export function SendingDetail({ page, sending }: { page: PageState; sending: Sending }) {
  const { id, payload, behaviour, url, deliveries } = sending
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
            options={[['', 'as the webhook is set'], ['none'], ...faultChoices]}
          />
          <button type="submit">Repeat</button>
        </ActionForm>
        {deliveries.length === 0 && <p class="quiet">No delivery was made yet.</p>}
        <ol>
          {deliveries.map((delivery) => (
            <Delivery delivery={delivery} />
          ))}
        </ol>
      </td>
    </tr>
  )
}
