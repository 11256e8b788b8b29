import type { EventPage, EventQuery, ReadableInbox } from '../../../inbox/reading.ts'
import { LoopYields } from '../../../internal/loop-yields.ts'

const pageSize = 1_000

/** Iterates over dead letters, newest first. May repeat one if others are added meanwhile: pages are by offset. */
export async function* eachDeadLetter({ deadLetters }: ReadableInbox, limit = Number.POSITIVE_INFINITY) {
  const yields = new LoopYields()
  for (let offset = 0; offset < limit; offset += pageSize) {
    const page = await deadLetters.list({ limit: Math.min(pageSize, limit - offset), offset })
    yield* yielding(page, yields)
    if (page.length < pageSize) return
  }
}

/** Iterates over the events of a query: none if the inbox cannot list events. */
export async function* eachEvent({ events }: ReadableInbox, query: Omit<EventQuery, 'cursor'>) {
  const yields = new LoopYields()
  let page: EventPage | undefined = await events?.list(query)
  while (page !== undefined) {
    yield* yielding(page.events, yields)
    page = page.cursor === undefined ? undefined : await events?.list({ ...query, cursor: page.cursor })
  }
}

async function* yielding<Row>(rows: readonly Row[], yields: LoopYields) {
  for (const row of rows) {
    const due = yields.due()
    if (due !== undefined) await due
    yield row
  }
}
