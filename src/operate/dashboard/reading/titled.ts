import type { EventRecord, EventState, ReadableInbox } from '../../../inbox/reading.ts'
import { eachEvent } from './each.ts'
import type { Redaction } from './redaction.ts'

/** An inbox, and what may be shown of its titles. */
export interface InboxView {
  readonly inbox: ReadableInbox
  readonly redaction: Redaction
}

/** How many of the newest events per state are searched by title. */
export const titledLimit = 1_000

/** Case-insensitive `includes`. */
export const contains = (text: string | undefined, part: string): boolean =>
  text?.toLowerCase().includes(part.toLowerCase()) ?? false

interface TitleQuery {
  readonly title: string
  readonly state: EventState | undefined
  readonly type: string | undefined
}

/** Finds events by title, newest first. Handled events have no title, and hidden titles never match. */
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
