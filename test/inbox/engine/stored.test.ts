import { expect, test } from 'vitest'
import { reviveEvent } from '../../../src/inbox/engine/stored.ts'
import { eventOf } from '../../support/inbox.ts'

test('an event that an earlier version stored, without issues, has an empty list of them', () => {
  const { issues: _, ...stored } = JSON.parse(JSON.stringify(eventOf('one').event))
  expect(reviveEvent(stored)).toEqual({ ...eventOf('one').event, issues: [] })
})

test('a stored event cannot be changed by a handler, like the event of a delivery', () => {
  const event = reviveEvent(JSON.parse(JSON.stringify(eventOf('one').event)))
  const { qualities, issues, payload } = event
  for (const each of [event, qualities, issues, payload]) expect(Object.isFrozen(each)).toBe(true)
})
