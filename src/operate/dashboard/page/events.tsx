import { overdueType } from '../../../handlers/expectations.ts'
import type { EventState, InboxEvents } from '../../../inbox/reading.ts'
import { Choice, Field } from '../../../internal/page/fields.tsx'
import { titledLimit } from '../reading/titled.ts'
import { makeRows } from './as-row.ts'
import { amount } from './elements.tsx'
import { type EventFilter, type Listed, listedBy } from './listed.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { Range, retryable, SelectionForm } from './selection.tsx'

/** Events, newest first, filtered by state, type and title. */
export async function showEvents(page: PageState): Promise<Answer> {
  const { events } = page.subject.inbox
  const title = 'Events'
  if (events === undefined) return { title, body: <p>This inbox cannot list its events, only its dead letters.</p> }
  const filter: EventFilter = {
    state: events.states.find((each) => each === page.query.get('state')),
    type: page.query.get('type') || undefined,
    title: page.query.get('title')?.trim() || undefined,
  }
  const listed = await listedBy(page, events, filter)
  return {
    title,
    body: (
      <>
        <Filter page={page} states={events.states} filter={filter} />
        <p class="quiet">
          {whatIsKept(events)}
          {filter.title && ` A title search covers the newest ${amount(titledLimit)} events of each state.`}
        </p>
        {listed.records.length === 0 ? (
          <Empty page={page} filter={filter} hasMore={listed.hasMore} />
        ) : (
          <List page={page} filter={filter} listed={listed} />
        )}
        {listed.pager}
      </>
    ),
  }
}

export const whatIsKept = ({ states }: InboxEvents): string =>
  states.includes('handled')
    ? 'Titles and payloads are not kept after an event is handled.'
    : 'This inbox forgets an event once it is handled.'

interface ListProps {
  readonly page: PageState
  readonly filter: EventFilter
  readonly listed: Listed
}

async function List({ page, filter, listed: { records, begin, total } }: ListProps) {
  const { state, type, title } = filter
  const count = (state === 'retrying' ? await retryable(page, type) : undefined) ?? total
  const actsOnAll = title === undefined && (state === 'dead' || state === 'retrying') && count !== 0
  return (
    <>
      <Range begin={begin} count={records.length} total={total} lines={page.at('events.jsonl', { ...filter })} />
      <SelectionForm
        page={page}
        action={state === 'retrying' ? 'retry' : 'replay'}
        hidden={{ until: String(page.now.getTime()), ...(state && { state }), ...(type && { type }) }}
        some={<SomeButtons page={page} state={state} />}
        all={actsOnAll && <All state={state} count={typeof count === 'number' ? count : undefined} />}
      >
        <Rows page={page} rows={await makeRows(page, records)} timeName="Received" selectable={['dead', 'retrying']} />
      </SelectionForm>
    </>
  )
}

interface EmptyProps {
  readonly page: PageState
  readonly filter: EventFilter
  readonly hasMore: boolean
}

function Empty({ page, filter, hasMore }: EmptyProps) {
  if (Object.values(filter).every((each) => each === undefined))
    return <p>No events yet. Accepted events appear here.</p>
  return (
    <p>
      {hasMore ? 'No event on this page matches. Older events follow.' : 'No event matches.'}{' '}
      <a href={page.at('events')}>Clear the filter</a>
    </p>
  )
}

function SomeButtons({ page, state }: { page: PageState; state: EventState | undefined }) {
  return (
    <>
      {state !== 'retrying' && (
        <button type="submit" class="primary">
          Replay the selected dead letters
        </button>
      )}
      {state !== 'dead' && (
        <button type="submit" class={state && 'primary'} formaction={page.at('retry')}>
          Retry the selected events now
        </button>
      )}
    </>
  )
}

function All({ state, count }: { state: 'dead' | 'retrying'; count: number | undefined }) {
  const all = count === undefined ? 'all that match' : `all ${amount(count)}`
  return (
    <button type="submit" name="scope" value="events" class="primary">
      {state === 'dead' ? `Replay ${all}` : `Retry ${all} now`}
    </button>
  )
}

interface FilterProps {
  readonly page: PageState
  readonly states: readonly EventState[]
  readonly filter: EventFilter
}

function Filter({ page, states, filter: { state, type, title } }: FilterProps) {
  const { inbox, sender } = page.subject
  const known = new Set(sender?.types)
  if (inbox.expected !== undefined) known.add(overdueType)
  if (type !== undefined) known.add(type)
  return (
    <form method="get" action={page.at('events')} id="filter" class="filter inline">
      <Field label="Title" name="title" value={title} />
      <Choice label="State" name="state" value={state} options={[['', 'any'], ...states]} />
      {sender === undefined ? (
        <Field label="Type" name="type" value={type} />
      ) : (
        <Choice label="Type" name="type" value={type} options={[['', 'any'], ...known]} />
      )}
      <button type="submit">Filter</button>
    </form>
  )
}
