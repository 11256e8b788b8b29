import { historyOf } from '../inbox/operations/event-query.ts'
import type { EventRecord, ReadableInbox } from '../inbox/reading.ts'
import { type OverdueRecord, overdueIn, overdueType } from './expectations.ts'

/** What became of an event that was not there at its deadline. */
export interface Overdue extends OverdueRecord {
  /** The first awaited event that was accepted after the deadline. */
  readonly came: EventRecord | undefined
  /** `unknown`: it may have come, since the inbox forgets what it has handled. */
  readonly outcome: 'missing' | 'came' | 'unknown'
}

/** Finds out whether what an overdue event reports has come since. `undefined` for the event of a delivery. */
export async function readOverdue(inbox: ReadableInbox, record: EventRecord): Promise<Overdue | undefined> {
  const overdue = overdueIn(record)
  if (overdue === undefined) return undefined
  const records = inbox.events && (await historyOf(inbox.events, record.mediaId))
  const came = records?.find(
    ({ type, receivedAt: acceptedAt }) => overdue.awaited.includes(type) && acceptedAt > record.receivedAt,
  )
  const remembers = inbox.events?.states.includes('handled')
  return { ...overdue, came, outcome: came !== undefined ? 'came' : remembers ? 'missing' : 'unknown' }
}

/** Maximum number of overdue events that are counted: the newest. */
const maxCounted = 100

/** An overdue event and its outcome. */
export interface OverdueEvent {
  readonly record: EventRecord
  readonly overdue: Overdue
}

/** Reads the newest overdue events. A sender can make up others of that type: they are left out. */
export async function newestOverdue(inbox: ReadableInbox) {
  const { events, cursor } = (await inbox.events?.list({ type: overdueType, limit: maxCounted })) ?? { events: [] }
  const found: OverdueEvent[] = []
  for (const record of events) {
    const overdue = await readOverdue(inbox, record)
    if (overdue !== undefined) found.push({ record, overdue })
  }
  return { found, hasMore: cursor !== undefined }
}
