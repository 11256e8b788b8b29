import { checkChoice, checkNumbers, checkUnknown } from '../../check-options.ts'
import { WebhookError } from '../../errors.ts'
import type { EventPage, EventQuery, EventRecord, EventState } from '../reading.ts'

/** The number of events of `history`. */
export const historyLimit = 1_000

/** Every state of an event. */
export const eventStates = ['waiting', 'running', 'retrying', 'dead', 'handled'] as const satisfies EventState[]

/** A query with its defaults. */
export type CheckedQuery = EventQuery & Required<Pick<EventQuery, 'order' | 'limit'>>

/** @throws WebhookError `invalid_option` */
export function checkQuery(query: EventQuery = {}): CheckedQuery {
  const { state, type, mediaId, order = 'newest', limit = 100, cursor, ...unknown } = query
  checkUnknown('events.list', unknown)
  if (state !== undefined) checkChoice('events.list', 'state', state, eventStates)
  checkChoice('events.list', 'order', order, ['newest', 'oldest'])
  checkNumbers('events.list', { limit })
  for (const [name, text] of Object.entries({ type, mediaId, cursor }))
    if (text !== undefined && typeof text !== 'string')
      throw new WebhookError('invalid_option', `events.list: ${name} has to be a text`)
  return { ...query, order, limit }
}

/** Returns `true` if a query asks for an event. */
export const matchesQuery = (record: EventRecord, query: EventQuery): boolean =>
  (['state', 'type', 'mediaId'] as const).every((name) => query[name] === undefined || query[name] === record[name])

/** Makes the error of a cursor that no page has given. */
export const wrongCursor = (): WebhookError =>
  new WebhookError('invalid_option', 'events.list: cursor has to come from the page before')

/** Makes a page of events that are all at hand, by the time of their receipt. */
export function pageOf(records: Iterable<EventRecord>, query: EventQuery | undefined): EventPage {
  const checked = checkQuery(query)
  const { order, limit, cursor } = checked
  const sign = order === 'oldest' ? 1 : -1
  const after = cursor === undefined ? undefined : readCursor(cursor)
  const found = [...records]
    .filter((each) => matchesQuery(each, checked) && (after === undefined || sign * compare(placeOf(each), after) > 0))
    .sort((a, b) => sign * compare(placeOf(a), placeOf(b)))
  const events = found.slice(0, limit)
  if (found.length === events.length) return { events }
  return { events, cursor: placeOf(events.at(-1) as EventRecord).join(' ') }
}

type Place = readonly [receivedAt: number, key: string]

const placeOf = ({ receivedAt, key }: EventRecord): Place => [receivedAt.getTime(), key]

const compare = ([at, key]: Place, [otherAt, otherKey]: Place): number =>
  at - otherAt || (key < otherKey ? -1 : key > otherKey ? 1 : 0)

function readCursor(cursor: string): Place {
  const [, at, key] = /^(\d+) (.+)$/s.exec(cursor) ?? []
  if (key === undefined) throw wrongCursor()
  return [Number(at), key]
}
