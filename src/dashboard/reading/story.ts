import type { DeadLetter, EventRecord, ReadableInbox } from '../../inbox/reading.ts'
import { deadRecord } from '../../inbox/shared/dead-record.ts'
import { eachDeadLetter, groupedLimit } from './causes.ts'

/** What an inbox knows of a key. */
export interface Story {
  /** Absent for an unreadable delivery. */
  readonly record: EventRecord | undefined
  /** Present for a dead letter. */
  readonly deadLetter: DeadLetter | undefined
}

/** Finds what is known of an event or an unreadable delivery. */
export async function storyOf(inbox: ReadableInbox, key: string): Promise<Story | undefined> {
  const record = await inbox.events?.get(key)
  if (record !== undefined && record.state !== 'dead') return { record, deadLetter: undefined }
  const deadLetter = await inbox.deadLetters.get(key)
  if (deadLetter === undefined) return record && { record, deadLetter }
  return { record: record ?? recordOf(deadLetter), deadLetter }
}

const recordOf = (deadLetter: DeadLetter): EventRecord | undefined =>
  deadLetter.event && deadRecord({ ...deadLetter, event: deadLetter.event })

/** What an inbox knows of a media. */
export interface MediaStory {
  /** In order of acceptance. */
  readonly records: readonly EventRecord[]
  /** `true` if only dead letters could be searched. */
  readonly deadLettersOnly: boolean
}

/** Finds the events of a media. */
export async function storyOfMedia(inbox: ReadableInbox, mediaId: string): Promise<MediaStory> {
  if (inbox.history !== undefined) return { records: await inbox.history(mediaId), deadLettersOnly: false }
  if (inbox.events !== undefined) {
    const { events } = await inbox.events.list({ mediaId, limit: 1_000 })
    return { records: events.toReversed(), deadLettersOnly: false }
  }
  const records: EventRecord[] = []
  for await (const deadLetter of eachDeadLetter(inbox, groupedLimit)) {
    const record = deadLetter.event?.mediaId === mediaId ? recordOf(deadLetter) : undefined
    if (record !== undefined) records.push(record)
  }
  return { records: records.sort((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime()), deadLettersOnly: true }
}
