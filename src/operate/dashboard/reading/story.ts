import { deadRecord } from '../../../inbox/operations/dead-letters.ts'
import type { DeadLetter, EventRecord, ReadableInbox } from '../../../inbox/reading.ts'
import { decoder } from '../../../internal/utf8.ts'
import { type CauseReport, groupedLimit } from './causes.ts'
import { eachDeadLetter } from './each.ts'
import type { InboxView } from './titled.ts'

export interface Story {
  /** Absent for an unreadable delivery. */
  readonly record: EventRecord | undefined
  readonly deadLetter: DeadLetter | undefined
}

export async function readStory(inbox: ReadableInbox, key: string): Promise<Story | undefined> {
  const record = await inbox.events?.get(key)
  if (record !== undefined && record.state !== 'dead') return { record, deadLetter: undefined }
  const deadLetter = await inbox.deadLetters.get(key)
  if (deadLetter === undefined) return record && { record, deadLetter }
  return { record: record ?? toRecord(deadLetter), deadLetter }
}

const toRecord = (deadLetter: DeadLetter): EventRecord | undefined =>
  deadLetter.event && deadRecord({ ...deadLetter, event: deadLetter.event })

/** Lists the events of a media item in order of acceptance: only dead letters, if the inbox lists nothing else. */
export async function storyOfMedia(inbox: ReadableInbox, mediaId: string): Promise<readonly EventRecord[]> {
  if (inbox.history !== undefined) return inbox.history(mediaId)
  if (inbox.events !== undefined) return (await inbox.events.list({ mediaId, limit: 1_000 })).events.toReversed()
  const records: EventRecord[] = []
  for await (const deadLetter of eachDeadLetter(inbox, groupedLimit)) {
    const record = deadLetter.event?.mediaId === mediaId ? toRecord(deadLetter) : undefined
    if (record !== undefined) records.push(record)
  }
  return records.sort((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime())
}

/** Finds the retrying event that blocks a waiting one (head-of-line blocking in strict order). */
export async function findBlocker(inbox: ReadableInbox, waiting: EventRecord): Promise<EventRecord | undefined> {
  if (waiting.state !== 'waiting') return undefined
  const records = await storyOfMedia(inbox, waiting.mediaId)
  const position = records.findIndex(({ key }) => key === waiting.key)
  return records.slice(0, Math.max(position, 0)).find(({ state }) => state === 'retrying')
}

/** How many of the newest unreadable deliveries are searched. */
const searchedUnreadable = 100

/** Finds unreadable deliveries whose bytes contain a media id. Hidden bytes are not searched: they could be guessed. */
export async function findUnreadable(
  { inbox, redaction }: InboxView,
  { causes }: CauseReport,
  mediaId: string,
): Promise<DeadLetter[]> {
  if (mediaId === '') return []
  const rows = causes.flatMap((cause) => (cause.isUnreadable ? cause.rows : []))
  const newest = rows.sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime()).slice(0, searchedUnreadable)
  const found: DeadLetter[] = []
  for (const { key } of newest) {
    const deadLetter = await inbox.deadLetters.get(key)
    const bytes = deadLetter?.unreadable && redaction.bytes(deadLetter.unreadable)
    if (bytes !== undefined && decoder.decode(bytes).includes(mediaId)) found.push(deadLetter as DeadLetter)
  }
  return found
}
