import { readHistory } from '../inbox/operations/event-query.ts'
import type { EventRecord, ReadableInbox } from '../inbox/reading.ts'
import { type OverdueRecord, overdueIn, overdueType } from './expectations.ts'

/** An overdue expectation, and whether its event came late. */
export interface OverdueOutcome extends OverdueRecord {
  /** The awaited event, if accepted after the deadline. */
  readonly came: EventRecord | undefined
  /** `unknown` if the inbox keeps no handled events. */
  readonly outcome: 'missing' | 'came' | 'unknown'
}

/** What became of the awaited event. Nothing to say if it is unknown. */
export const outcomeWords: Readonly<Record<OverdueOutcome['outcome'], string | undefined>> = {
  missing: 'still missing',
  came: 'came later',
  unknown: undefined,
}

export const overdueText = ({ outcome }: OverdueOutcome): string =>
  ['overdue', outcomeWords[outcome] ?? []].flat().join(', ')

/** `undefined` if the record is not of an overdue event. */
export async function readOverdue(inbox: ReadableInbox, record: EventRecord): Promise<OverdueOutcome | undefined> {
  const overdue = overdueIn(record)
  if (overdue === undefined) return undefined
  const records = inbox.events && (await readHistory(inbox.events, record.mediaId))
  const came = records?.find(
    ({ type, receivedAt: acceptedAt }) => overdue.awaited.includes(type) && acceptedAt > record.receivedAt,
  )
  const remembers = inbox.events?.states.includes('handled')
  return { ...overdue, came, outcome: came !== undefined ? 'came' : remembers ? 'missing' : 'unknown' }
}

/** Newest overdue events read. */
const maxCounted = 100

export interface ReportedOverdue {
  readonly record: EventRecord
  readonly overdue: OverdueOutcome
}

/** Reads the newest overdue events, without deliveries that merely use their type. */
export async function newestOverdue(inbox: ReadableInbox) {
  const { events, cursor } = (await inbox.events?.list({ type: overdueType, limit: maxCounted })) ?? { events: [] }
  const found: ReportedOverdue[] = []
  for (const record of events) {
    const overdue = await readOverdue(inbox, record)
    if (overdue !== undefined) found.push({ record, overdue })
  }
  return { found, hasMore: cursor !== undefined }
}
