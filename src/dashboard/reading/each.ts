import type { EventPage, EventQuery, ReadableInbox } from '../../inbox/reading.ts'
import { Turns } from '../../internal/turns.ts'

/** The number of dead letters that are read at a time. */
const pageSize = 1_000

/**
 * Reads dead letters page by page, newest first. The same dead letter can come twice if others are added in the
 * meantime.
 */
export async function* eachDeadLetter({ deadLetters }: ReadableInbox, limit = Number.POSITIVE_INFINITY) {
  const turns = new Turns()
  for (let offset = 0; offset < limit; offset += pageSize) {
    const page = await deadLetters.list({ limit: Math.min(pageSize, limit - offset), offset })
    yield* inTurns(page, turns)
    if (page.length < pageSize) return
  }
}

/** Reads the events of a query page by page. There are none if the inbox cannot list its events. */
export async function* eachEvent({ events }: ReadableInbox, query: Omit<EventQuery, 'cursor'>) {
  const turns = new Turns()
  let page: EventPage | undefined = await events?.list(query)
  while (page !== undefined) {
    yield* inTurns(page.events, turns)
    page = page.cursor === undefined ? undefined : await events?.list({ ...query, cursor: page.cursor })
  }
}

async function* inTurns<Row>(rows: readonly Row[], turns: Turns) {
  for (const row of rows) {
    const turn = turns.due()
    if (turn !== undefined) await turn
    yield row
  }
}
