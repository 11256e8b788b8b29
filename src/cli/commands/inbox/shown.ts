import { type Overdue, readOverdue } from '../../../handlers/overdue.ts'
import { shortId } from '../../../inbox/operations/operations.ts'
import type { EventRecord, InspectedInbox } from '../../../inbox/reading.ts'

/** An event or a dead letter with its short id. */
export type Named<Item> = Item & { readonly shortId: string }

/** An event, and for an overdue one whether the awaited event has come since. */
export type ShownEvent = Named<EventRecord> & { readonly overdue?: Overdue | undefined }

export const named = async <Item extends { readonly key: string }>(item: Item): Promise<Named<Item>> => ({
  shortId: await shortId(item.key),
  ...item,
})

export const shownEvent = async (inbox: InspectedInbox, event: EventRecord): Promise<ShownEvent> => ({
  ...(await named(event)),
  overdue: await readOverdue(inbox, event),
})
