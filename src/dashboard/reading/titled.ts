import type { EventRecord, EventState, ReadableInbox } from '../../inbox/reading.ts'
import { eachEvent } from './each.ts'
import type { Redaction } from './redaction.ts'

/** The inbox that is searched, and what the page shows of its titles. */
export interface InboxView {
  readonly inbox: ReadableInbox
  readonly redaction: Redaction
}

/** The number of events of each state that are searched by title: the newest. */
export const titledLimit = 1_000

/** Returns true if a text has another one in it, in upper or lower case. */
export const contains = (text: string | undefined, part: string): boolean =>
  text?.toLowerCase().includes(part.toLowerCase()) ?? false

interface TitleQuery {
  readonly title: string
  readonly state: EventState | undefined
  readonly type: string | undefined
}

/** Finds events by title, newest first. A handled event has none, and a title that the page hides is not searched. */
export async function eventsTitled(
  { inbox, redaction }: InboxView,
  { title, state, type }: TitleQuery,
): Promise<readonly EventRecord[]> {
  const found: EventRecord[] = []
  const states = state === undefined ? (inbox.events?.states ?? []) : [state]
  for (const each of states.filter((name) => name !== 'handled')) {
    let read = 0
    for await (const record of eachEvent(inbox, {
      state: each,
      ...(type !== undefined && { type }),
      limit: titledLimit,
    })) {
      if (record.event && contains(redaction.title(record.event), title)) found.push(record)
      if (++read === titledLimit) break
    }
  }
  return found.sort((a, b) => b.receivedAt.getTime() - a.receivedAt.getTime())
}
