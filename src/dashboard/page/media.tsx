import { Copyable, Fact, Facts } from '../../page/elements.tsx'
import { Section } from '../../page/section.tsx'
import { storyOfMedia, unreadableOf } from '../reading/story.ts'
import { rowOfDead, rowOfRecord } from './as-row.ts'
import { amount, Foreign } from './elements.tsx'
import { whyUnknown } from './event.tsx'
import type { Answer, PageState } from './page-state.ts'
import { ReplaySelected, Rows, SelectionForm } from './rows.tsx'

/** The events of a media item, in order of acceptance. */
export async function showMedia(page: PageState): Promise<Answer> {
  const { inbox, redaction, causes } = page.subject
  const id = page.query.get('id') ?? ''
  const { records, deadLettersOnly } = await storyOfMedia(inbox, id)
  const { deadLetters } = await inbox.stats()
  const unreadable = await unreadableOf(inbox, await causes.read(deadLetters), id)
  const rows = records.map((record) => rowOfRecord(page.subject, record))
  const title = records.map(({ event }) => event && redaction.title(event)).findLast((each) => each !== undefined)
  return {
    title: 'Media',
    status: rows.length + unreadable.length === 0 ? 404 : 200,
    body: (
      <>
        <div class="card">
          <Facts>
            {title !== undefined && (
              <Fact name="Title">
                <Foreign text={title} />
              </Fact>
            )}
            <Fact name="Media id">
              <Copyable text={id} label="media id" />
            </Fact>
            <Fact name="Events">{amount(rows.length)}</Fact>
          </Facts>
        </div>
        <p class="quiet">{whatIsKnown(page, deadLettersOnly)}</p>
        {rows.length === 0 ? (
          <p>No event of this media item is known, and no event has this key. {whyUnknown(inbox)}</p>
        ) : (
          <SelectionForm page={page} some={<ReplaySelected />}>
            <Rows page={page} rows={rows} timeName="Received" selectable={['dead']} />
          </SelectionForm>
        )}
        {unreadable.length > 0 && (
          <Section id="unreadable" title="Unreadable deliveries that mention it">
            <Rows page={page} rows={unreadable.map((each) => rowOfDead(causes.rowOf(each)))} timeName="Received" />
          </Section>
        )}
      </>
    ),
  }
}

function whatIsKnown({ subject: { inbox } }: PageState, deadLettersOnly: boolean): string {
  if (deadLettersOnly)
    return 'This inbox shows its dead letters only: events that wait or were handled are not among these.'
  if (inbox.events?.states.includes('handled'))
    return 'These are all its events, in order of acceptance, for the time for which the inbox remembers event keys.'
  return 'In order of acceptance. This inbox forgets an event once it was handled.'
}
