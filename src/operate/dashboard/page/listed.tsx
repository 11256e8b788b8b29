import type { Child } from 'hono/jsx'
import type { EventRecord, EventState, InboxEvents } from '../../../inbox/reading.ts'
import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import { eventsTitled } from '../reading/titled.ts'
import { amount } from './elements.tsx'
import type { PageState } from './page-state.ts'

const pageSize = 25

export interface EventFilter {
  readonly state: EventState | undefined
  readonly type: string | undefined
  readonly title: string | undefined
}

export interface Listed {
  readonly records: readonly EventRecord[]
  readonly begin: number
  /** As in {@link Range}. */
  readonly total: number | string | undefined
  readonly hasMore: boolean
  readonly pager: Child
}

export function listedBy(page: PageState, events: InboxEvents, { title, ...filter }: EventFilter): Promise<Listed> {
  return title === undefined ? readList(page, events, filter) : findTitled(page, title, filter)
}

async function readList(page: PageState, events: InboxEvents, filter: Omit<EventFilter, 'title'>): Promise<Listed> {
  const { state, type } = filter
  const cursor = page.query.get('cursor') || undefined
  const found = await events.list({
    limit: pageSize,
    ...(state !== undefined && { state }),
    ...(type !== undefined && { type }),
    ...(cursor !== undefined && { cursor }),
  })
  const isWhole = cursor === undefined && found.cursor === undefined
  const records = state === 'running' && isWhole ? longestFirst(found.events) : found.events
  const begin = cursor === undefined ? 0 : Math.max(0, Math.trunc(Number(page.query.get('begin')) || 0))
  const next = { ...filter, cursor: found.cursor, begin: String(begin + records.length) }
  const pager = (
    <nav class="pager" aria-label="Pages of events">
      {cursor === undefined ? <span /> : <a href={page.at('events', { ...filter })}>← Newest</a>}
      <span />
      {found.cursor === undefined ? <span /> : <a href={page.at('events', next)}>Older →</a>}
    </nav>
  )
  return { records, begin, total: await countEvents(page, filter), hasMore: found.cursor !== undefined, pager }
}

async function findTitled(page: PageState, title: string, filter: Omit<EventFilter, 'title'>): Promise<Listed> {
  const found = await eventsTitled(page.subject, { title, ...filter })
  const { current, last, offset: begin } = pageAt(Number(page.query.get('page')), found.length, pageSize)
  const address = (number: number) => page.at('events', { ...filter, title, page: String(number) })
  const pager = <Pager of="events" current={current} last={last} address={address} />
  return { records: found.slice(begin, begin + pageSize), begin, total: found.length, hasMore: false, pager }
}

/** Longest-running first. An unknown start sorts last: such an event has only just begun. */
const longestFirst = (records: readonly EventRecord[]): readonly EventRecord[] =>
  records.toSorted((a, b) => startOf(a) - startOf(b))

const startOf = ({ startedAt }: EventRecord): number => startedAt?.getTime() ?? Number.MAX_SAFE_INTEGER

/** Counts the events of a filter, where stats or the grouped dead letters suffice. */
async function countEvents(
  { subject: { causes }, stats: read }: PageState,
  { state, type }: Omit<EventFilter, 'title'>,
): Promise<number | string | undefined> {
  const stats = await read()
  if (state === 'dead') {
    const { causes: all, isWhole } = await causes.read(stats.deadLetters)
    const rows = all.flatMap((cause) => (cause.isUnreadable ? [] : cause.rows))
    if (isWhole) return rows.filter((row) => type === undefined || row.type === type).length
    return type === undefined ? `at least ${amount(rows.length)}` : undefined
  }
  return type === undefined && (state === 'waiting' || state === 'running' || state === 'retrying')
    ? stats[state]
    : undefined
}
