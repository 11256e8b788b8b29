import type { EventPage, EventQuery, ReadableInbox } from '../../../inbox/reading.ts'
import { LoopYields } from '../../../internal/turns.ts'

const pageSize = 1_000

/** Iterates over dead letters, newest first. May repeat one if others are added meanwhile: pages are by offset. */
export async function* eachDeadLetter({ deadLetters }: ReadableInbox, limit = Number.POSITIVE_INFINITY) {
  const turns = new LoopYields()
  for (let offset = 0; offset < limit; offset += pageSize) {
    const page = await deadLetters.list({ limit: Math.min(pageSize, limit - offset), offset })
    yield* inTurns(page, turns)
    if (page.length < pageSize) return
  }
}

/** Iterates over the events of a query: none if the inbox cannot list events. */
export async function* eachEvent({ events }: ReadableInbox, query: Omit<EventQuery, 'cursor'>) {
  const turns = new LoopYields()
  let page: EventPage | undefined = await events?.list(query)
  while (page !== undefined) {
    yield* inTurns(page.events, turns)
    page = page.cursor === undefined ? undefined : await events?.list({ ...query, cursor: page.cursor })
  }
}

async function* inTurns<Row>(rows: readonly Row[], turns: LoopYields) {
  for (const row of rows) {
    const turn = turns.due()
    if (turn !== undefined) await turn
    yield row
  }
}
