import { expect, test } from 'vitest'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { ExpectationRules } from '../../src/handlers/expectations.ts'
import { eventOf } from '../support/inbox.ts'

test('the overdue events of two rules have two keys, although their names and keys with colons would make one text', () => {
  const rules = new ExpectationRules()
  for (const name of ['a', 'a:b', 'a%3Ab', 'a\ud800'])
    rules.add(name, ['encoding.finished'], { then: 'encoding.failed', within: '1 h' }, mediaService)
  const keys = ['c', 'b:c'].flatMap((key) =>
    (rules.expectationChanges(eventOf(key))?.begins ?? []).map(({ overdue }) => overdue.event.key),
  )
  expect(keys[0]).toBe('overdue:a:c')
  expect([keys.length, new Set(keys).size]).toEqual([8, 8])
})
