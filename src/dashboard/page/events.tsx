import { eventTypes } from '../../events/catalogue.ts'
import { overdueType } from '../../handlers/expectations.ts'
import type { EventRecord, EventState } from '../../inbox/reading.ts'
import { Choice } from '../../page/fields.tsx'
import { groupedLimit } from '../reading/causes.ts'
import { rowOfRecord } from './as-row.ts'
import { amount } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Range, Rows, SelectionForm } from './rows.tsx'

/** The number of events of a page. */
const pageSize = 25

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
  const isWhole = cursor === undefined && found.cursor === undefined
  const shown = state === 'running' && isWhole ? longestFirst(found.events) : found.events
  const rows = shown.map((record) => rowOfRecord(page.subject, record))
  const count = await countOf(page, state, type)
  const begin = cursor === undefined ? 0 : Math.max(0, Math.trunc(Number(page.query.get('begin')) || 0))
  const next = String(begin + rows.length)
  return {
    title,
    body: (
      <>
        <Filter page={page} states={events.states} state={state} type={type} />
        <p class="quiet">
          {events.states.includes('handled')
            ? 'Titles and payloads are not kept after an event was handled.'
            : 'This inbox forgets an event once it was handled.'}
        </p>
        {rows.length > 0 && (
          <Range begin={begin} count={rows.length} total={count} lines={page.at('events.jsonl', { state, type })} />
        )}
        {rows.length === 0 ? (
          <Empty
            page={page}
            isFiltered={state !== undefined || type !== undefined}
            hasMore={found.cursor !== undefined}
          />
        ) : (
          <SelectionForm
            page={page}
            action={state === 'retrying' ? 'retry' : 'replay'}
            hidden={{ until: String(page.now.getTime()), ...(state && { state }), ...(type && { type }) }}
            some={<SomeButtons page={page} state={state} />}
            all={
              (state === 'dead' || state === 'retrying') && (
                <All state={state} count={typeof count === 'number' ? count : undefined} />
              )
            }
          >
            <Rows page={page} rows={rows} timeName="Received" selectable={['dead', 'retrying']} />
          </SelectionForm>
        )}
        <nav class="pager" aria-label="Pages of events">
          {cursor === undefined ? <span /> : <a href={page.at('events', { state, type })}>← Newest</a>}
          <span />
          {found.cursor === undefined ? (
            <span />
          ) : (
            <a href={page.at('events', { state, type, cursor: found.cursor, begin: next })}>Older →</a>
          )}
        </nav>
      </>
    ),
  }
}

/** Sorts running events by their start. Those whose start is not known come last: they have not run for long. */
const longestFirst = (records: readonly EventRecord[]): readonly EventRecord[] =>
  records.toSorted((a, b) => startOf(a) - startOf(b))

const startOf = ({ startedAt }: EventRecord): number => startedAt?.getTime() ?? Number.MAX_SAFE_INTEGER

interface EmptyProps {
  readonly page: PageState
  readonly isFiltered: boolean
  readonly hasMore: boolean
}

function Empty({ page, isFiltered, hasMore }: EmptyProps) {
  if (!isFiltered) return <p>There are no events. What the receiver accepts appears here.</p>
  return (
    <p>
      {hasMore ? 'No event matches so far: older ones follow.' : 'No event matches.'}{' '}
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

/** Acts on all events of the filter. */
function All({ state, count }: { state: 'dead' | 'retrying'; count: number | undefined }) {
  const all = count === undefined ? 'all that match' : `all ${amount(count)}`
  return (
    <button type="submit" name="scope" value="events" class="primary">
      {state === 'dead' ? `Replay ${all}` : `Retry ${all} now`}
    </button>
  )
}

/** Counts the events of a filter, if the inbox or the dead letters that were read tell it. */
async function countOf(
  { subject: { inbox, causes } }: PageState,
  state: EventState | undefined,
  type: string | undefined,
): Promise<number | string | undefined> {
  const stats = await inbox.stats()
  if (state === 'dead') {
    const { causes: all, grouped } = await causes.read(stats.deadLetters)
    const rows = all.flatMap((cause) => (cause.isUnreadable ? [] : cause.rows))
    if (grouped < groupedLimit) return rows.filter((row) => type === undefined || row.type === type).length
    return type === undefined ? `at least ${amount(rows.length)}` : undefined
  }
  return type === undefined && (state === 'waiting' || state === 'running' || state === 'retrying')
    ? stats[state]
    : undefined
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
