import { expect, test } from 'vitest'
import { reviveEvent } from '../../../src/inbox/engine/stored.ts'
import { eventOf } from '../../support/inbox.ts'

test('a stored event of a look-up stays one', () => {
  const stored = JSON.parse(JSON.stringify({ ...eventOf('one').event, source: 'lookup' }))
  expect(reviveEvent(stored).source).toBe('lookup')
})

test('a stored event cannot be changed by a handler, like the event of a delivery', () => {
  const event = reviveEvent(JSON.parse(JSON.stringify(eventOf('one').event)))
  const { qualities, issues, payload } = event
  for (const each of [event, qualities, issues, payload]) expect(Object.isFrozen(each)).toBe(true)
})
