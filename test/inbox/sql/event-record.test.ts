import { expect, test } from 'vitest'
import { toRecord } from '../../../src/inbox/sql/event-record.ts'
import { eventOf } from '../../support/inbox.ts'

const row = {
  event: eventOf('one').event,
  receivedAt: 0,
  attempts: 1,
  completed: [],
  failedAttempts: null,
  trace: null,
}
const own = { owner: 'me', process: 'here:1', started: new Map([[7, { startedAt: new Date(), handler: 'a' }]]) }
const recordOf = (dueAt: number | null) =>
  toRecord({ source: 'event', id: 7, record: JSON.stringify({ ...row, dueAt }) }, own)

test('an attempt counts once, also while the answer to its recorded retry is on the way', () => {
  expect(recordOf(null)).toMatchObject({ state: 'running', attempts: 2, handler: 'a' })
  const retrying = recordOf(5)
  expect(retrying).toMatchObject({ state: 'retrying', attempts: 1, dueAt: new Date(5) })
  expect(retrying).not.toHaveProperty('handler')
})
