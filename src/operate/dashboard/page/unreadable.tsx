import type { UnreadableDelivery } from '../../../inbox/reading.ts'
import { Section } from '../../../internal/page/section.tsx'
import { showBytes } from '../reading/bytes.ts'
import { whyUnreadable } from './cause.tsx'
import { amount, Scrolling } from './elements.tsx'
import type { PageState } from './page-state.ts'

export function Unreadable({ page, unreadable }: { page: PageState; unreadable: UnreadableDelivery }) {
  const bytes = page.subject.redaction.bytes(unreadable)
  const shown = bytes && showBytes(bytes)
  return (
    <Section id="body" title="Body">
      <p class="quiet">
        {amount(unreadable.body.length)} bytes{shown?.isDump && ', which are not UTF-8'}. {whyUnreadable}
      </p>
      {shown ? (
        <Scrolling label="The body as sent">
          <pre dir="ltr" class={shown.isDump ? 'dump' : undefined}>
            {shown.text}
          </pre>
        </Scrolling>
      ) : (
        <p class="quiet">Hidden by the redact option.</p>
      )}
    </Section>
  )
}
