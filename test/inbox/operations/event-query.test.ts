import { expect, test } from 'vitest'
import { makeEventPage } from '../../../src/inbox/operations/event-query.ts'
import type { EventRecord } from '../../../src/inbox/reading.ts'
import { eventOf } from '../../support/inbox.ts'

const recordOf = (key: string): EventRecord => {
  const { event, receivedAt } = eventOf(key)
  const { type, mediaId } = event
  return { key, type, mediaId, event, receivedAt, state: 'waiting', attempts: 0, completed: [], failedAttempts: [] }
}

test('a page ends with any key, also one with spaces and line breaks, and the next page continues after it', () => {
  const records = ['a b', 'a b\nc', 'a b\nc d', '1 2'].map(recordOf)
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = makeEventPage(records, { limit: 1, ...(cursor !== undefined && { cursor }) })
    found.push(...page.events.map(({ key }) => key))
    cursor = page.cursor
  } while (cursor !== undefined && found.length < 10)
  expect(found.toSorted()).toEqual(records.map(({ key }) => key).toSorted())
})
