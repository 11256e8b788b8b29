import { WebhookError } from '../../errors.ts'
import { anyText, checkOptions, oneOf, type Rules, wholeNumber } from '../../internal/check-options.ts'
import type { EventPage, EventQuery, EventRecord, EventState, InboxEvents } from '../reading.ts'

const historyLimit = 1_000

export const eventStates = ['waiting', 'running', 'retrying', 'dead', 'handled'] as const satisfies EventState[]

const rules: Rules<EventQuery> = {
  state: oneOf(...eventStates),
  type: anyText,
  mediaId: anyText,
  order: oneOf('newest', 'oldest'),
  limit: wholeNumber(),
  cursor: anyText,
}

export type CheckedQuery = EventQuery & Required<Pick<EventQuery, 'order' | 'limit'>>

/** @throws WebhookError `invalid_option` */
export function checkQuery(query: EventQuery = {}): CheckedQuery {
  checkOptions('events.list', query, rules)
  const { order = 'newest', limit = 100 } = query
  return { ...query, order, limit }
}

export const matchesQuery = (record: EventRecord, query: EventQuery): boolean =>
  (['state', 'type', 'mediaId'] as const).every((name) => query[name] === undefined || query[name] === record[name])

export const wrongCursor = (): WebhookError =>
  new WebhookError('invalid_option', 'events.list: cursor must come from the previous page of the same query')

/** Returns the newest 1,000 events of a media item, oldest first. */
export async function readHistory(events: Pick<InboxEvents, 'list'>, mediaId: string): Promise<readonly EventRecord[]> {
  return (await events.list({ mediaId, limit: historyLimit })).events.toReversed()
}

/** Cuts a page from a complete list, sorted by the time of receipt. */
export function makeEventPage(records: Iterable<EventRecord>, query: EventQuery | undefined): EventPage {
  const checked = checkQuery(query)
  const { order, limit, cursor } = checked
  const sign = order === 'oldest' ? 1 : -1
  const after = cursor === undefined ? undefined : parseCursor(cursor)
  const found = [...records]
    .filter(
      (each) => matchesQuery(each, checked) && (after === undefined || sign * compare(positionOf(each), after) > 0),
    )
    .sort((a, b) => sign * compare(positionOf(a), positionOf(b)))
  const events = found.slice(0, limit)
  if (found.length === events.length) return { events }
  return { events, cursor: positionOf(events.at(-1) as EventRecord).join(' ') }
}

/** Sort position: ms since the epoch, then the key as tie-breaker. */
export type Position = readonly [at: number, text: string]

const positionOf = ({ receivedAt, key }: EventRecord): Position => [receivedAt.getTime(), key]

const compare = ([at, key]: Position, [otherAt, otherKey]: Position): number =>
  at - otherAt || (key < otherKey ? -1 : key > otherKey ? 1 : 0)

/** Inverse of joining a position with a space. @throws WebhookError `invalid_option` */
function parseCursor(cursor: string): Position {
  const [, at, text] = /^(\d+) (.+)$/s.exec(cursor) ?? []
  if (text === undefined) throw wrongCursor()
  return [Number(at), text]
}
