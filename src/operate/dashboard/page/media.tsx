import { keysWithId, mediaBeginning } from '../../../inbox/operations/finding.ts'
import type { DeadLetter } from '../../../inbox/reading.ts'
import { Copyable, Fact, Facts } from '../../../internal/page/elements.tsx'
import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { findUnreadable, storyOfMedia } from '../reading/story.ts'
import { makeRows, rowOfDead } from './as-row.ts'
import { amount, Foreign } from './elements.tsx'
import { whyUnknown } from './event.tsx'
import { whatIsKept } from './events.tsx'
import { LastOperations } from './operations.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { ReplaySelected, SelectionForm } from './selection.tsx'

const pageSize = 25
const shownUnreadable = 5
const shownMatches = 10

/** Open expectations searched, earliest deadline first. */
const searchedOpen = 1_000

/** The events of a media item, in order of acceptance. */
export async function showMedia(page: PageState): Promise<Answer> {
  const { inbox, redaction, causes } = page.subject
  const id = page.query.get('id') ?? ''
  const records = await storyOfMedia(inbox, id)
  const { deadLetters, expected = 0 } = await page.stats()
  const open =
    expected > 0 ? ((await inbox.expected?.(searchedOpen)) ?? []).filter(({ mediaId }) => mediaId === id) : []
  const unreadable = await findUnreadable(page.subject, await causes.read(deadLetters), id)
  const { current, last, offset } = pageAt(Number(page.query.get('page')), records.length, pageSize)
  // Page 1 has the newest events: the operator wants the outcome first.
  const end = records.length - offset
  const rows = await makeRows(page, records.slice(Math.max(0, end - pageSize), end))
  const isUnknown = rows.length + open.length === 0
  const title = records.map(({ event }) => event && redaction.title(event)).findLast((each) => each !== undefined)
  return {
    title: 'Media item',
    status: isUnknown && unreadable.length === 0 ? 404 : 200,
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
            <Fact name="Events">{amount(records.length)}</Fact>
          </Facts>
        </div>
        {rows.length > 0 && (
          <p class="quiet">
            {inbox.events
              ? `In order of acceptance. ${whatIsKept(inbox.events)}`
              : 'Only its dead letters: this inbox lists no other events.'}
          </p>
        )}
        {isUnknown ? (
          <Unknown page={page} id={id} />
        ) : (
          <SelectionForm page={page} some={<ReplaySelected />}>
            <Rows page={page} rows={rows} timeName="Received" selectable={['dead']} without="media" open={open} />
          </SelectionForm>
        )}
        <Pager
          of="events"
          current={current}
          last={last}
          address={(number) => page.at('media', { id, page: String(number) })}
        />
        {unreadable.length > 0 && <Mentions page={page} unreadable={unreadable} />}
      </>
    ),
  }
}

const Unknown = ({ page, id }: { page: PageState; id: string }) => (
  <>
    <p>No media item has this id, and no event has this key. {whyUnknown(page.subject.inbox)}</p>
    <LastOperations page={page} eventKey={id} />
    <WithShortId page={page} id={id} />
    <MediaStartingWith page={page} id={id} />
    {page.subject.inbox.events && (
      <p>
        <a href={page.at('events', { title: id })}>Search the titles for it</a>
      </p>
    )}
  </>
)

const Mentions = ({ page, unreadable }: { page: PageState; unreadable: readonly DeadLetter[] }) => (
  <Section id="unreadable" title="Unreadable deliveries that mention it">
    {unreadable.length > shownUnreadable && (
      <p class="quiet">
        The newest {shownUnreadable} of {amount(unreadable.length)}.
      </p>
    )}
    <Rows
      page={page}
      rows={unreadable.slice(0, shownUnreadable).map((each) => rowOfDead(page.subject.causes.makeRow(each)))}
      timeName="Received"
    />
  </Section>
)

async function WithShortId({ page, id }: { page: PageState; id: string }) {
  const keys = await keysWithId(page.subject.inbox, id)
  return <Links intro="Events with this short id:" of={keys.map((key) => [key, page.at('event', { key })])} />
}

async function MediaStartingWith({ page, id }: { page: PageState; id: string }) {
  const matches = id === '' ? [] : (await mediaBeginning(page.subject.inbox, id)).slice(0, shownMatches)
  return (
    <Links
      intro="Media items whose id begins with it:"
      of={matches.map((each) => [each, page.at('media', { id: each })])}
    />
  )
}

const Links = ({ intro, of }: { intro: string; of: readonly (readonly [text: string, address: string])[] }) =>
  of.length === 0 ? null : (
    <>
      <p>{intro}</p>
      <ul>
        {of.map(([text, address]) => (
          <li>
            <a class="data" href={address}>
              <Foreign text={text} longest={100} />
            </a>
          </li>
        ))}
      </ul>
    </>
  )
