import { type OverdueOutcome, readOverdue } from '../../../handlers/overdue.ts'
import { shortId } from '../../../inbox/operations/operations.ts'
import type { EventRecord, InspectedInbox } from '../../../inbox/reading.ts'

export type WithShortId<Item> = Item & { readonly shortId: string }

/** An event. If overdue, with what became of the awaited event. */
export type ShownEvent = WithShortId<EventRecord> & { readonly overdue?: OverdueOutcome | undefined }

export const named = async <Item extends { readonly key: string }>(item: Item): Promise<WithShortId<Item>> => ({
  shortId: await shortId(item.key),
  ...item,
})

export const shownEvent = async (inbox: InspectedInbox, event: EventRecord): Promise<ShownEvent> => ({
  ...(await named(event)),
  overdue: await readOverdue(inbox, event),
})
