import { eventTypes } from '../../events/catalogue.ts'
import { overdueType } from '../../handlers/expectations.ts'
import type { EventState } from '../../inbox/reading.ts'
import { Choice } from '../../page/fields.tsx'
import { rowOfRecord } from './as-row.ts'
import type { Answer, PageState } from './page-state.ts'
import { Rows, SelectionForm } from './rows.tsx'

/** The number of events of a page. */
const pageSize = 50

/** The events of an inbox, newest first, by state and type. */
export async function showEvents(page: PageState): Promise<Answer> {
  const { events } = page.subject.inbox
  const title = 'Events'
  if (events === undefined)
    return { title, body: <p>This inbox cannot list its events. It shows its dead letters only.</p> }
  const state = events.states.find((each) => each === page.query.get('state'))
  const type = page.query.get('type') || undefined
  const cursor = page.query.get('cursor') || undefined
  const found = await events.list({
    limit: pageSize,
    ...(state !== undefined && { state }),
    ...(type !== undefined && { type }),
    ...(cursor !== undefined && { cursor }),
  })
  const rows = found.events.map((record) => rowOfRecord(page.subject, record))
  return {
    title,
    body: (
      <>
        <Filter page={page} states={events.states} state={state} type={type} />
        {!events.states.includes('handled') && <p class="quiet">This inbox forgets an event once it was handled.</p>}
        {rows.length === 0 ? (
          <p>{state === undefined && type === undefined ? 'There are no events.' : 'No event matches.'}</p>
        ) : (
          <SelectionForm page={page} buttons={<Buttons page={page} />}>
            <Rows page={page} rows={rows} timeName="Received" selectable={['dead', 'retrying']} />
          </SelectionForm>
        )}
        <nav class="pager" aria-label="Pages of events">
          {cursor === undefined ? <span /> : <a href={page.at('events', { state, type })}>← Newest</a>}
          <span />
          {found.cursor === undefined ? (
            <span />
          ) : (
            <a href={page.at('events', { state, type, cursor: found.cursor })}>Older →</a>
          )}
        </nav>
      </>
    ),
  }
}

function Buttons({ page }: { page: PageState }) {
  return (
    <>
      <button type="submit">Replay the selected dead letters</button>
      <button type="submit" formaction={page.at('retry')}>
        Retry the selected events now
      </button>
    </>
  )
}

interface FilterProps {
  readonly page: PageState
  readonly states: readonly EventState[]
  readonly state: EventState | undefined
  readonly type: string | undefined
}

/** With the script it needs no button. */
function Filter({ page, states, state, type }: FilterProps) {
  const types = new Set<string>(eventTypes)
  if (page.subject.inbox.expected !== undefined) types.add(overdueType)
  if (type !== undefined) types.add(type)
  return (
    <form method="get" action={page.at('events')} id="filter" class="filter inline">
      <Choice
        label="State"
        name="state"
        value={state}
        options={[['', 'any'], ...states.map((each) => [each] as const)]}
      />
      <Choice
        label="Type"
        name="type"
        value={type}
        options={[['', 'any'], ...[...types].map((each) => [each] as const)]}
      />
      <button type="submit">Filter</button>
    </form>
  )
}
