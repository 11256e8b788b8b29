import { expect, onTestFinished, test } from 'vitest'
import type { Expectation } from '../../../src/inbox/inbox.ts'
import { MemoryExpectations } from '../../../src/inbox/memory/expectations.ts'
import { eventOf } from '../../support/inbox.ts'

const hour = 3_600_000

/** Expectations that are due so many ms after an hour from now. */
function expecting(dueInMs: readonly number[]) {
  const expectations = new MemoryExpectations(
    () => true,
    () => {},
  )
  onTestFinished(() => expectations.stop())
  const now = Date.now() + hour
  for (const [index, ms] of dueInMs.entries()) {
    const mediaId = `m${index}`
    const dueAt = new Date(now + ms)
    const begin: Expectation = { rule: 'rule', dueAt, overdue: eventOf(mediaId, mediaId) }
    expectations.take(mediaId, { at: new Date(0), begins: [begin], ends: [] })
  }
  return (limit: number) => expectations.list(limit).map(({ dueAt }) => dueAt.getTime() - now)
}

const count = 5_000
const orders: readonly (readonly [string, (index: number) => number])[] = [
  ['in order of their deadlines', (index) => index],
  ['in the opposite order', (index) => count - index],
  ['in any order, some at the same time', (index) => (index * 7_919) % 1_234],
]

test.each(orders)('of many expectations that began %s, those that are due first are listed', (_, dueInMs) => {
  const all = Array.from({ length: count }, (_, index) => dueInMs(index))
  const list = expecting(all)
  const sorted = all.toSorted((a, b) => a - b)
  for (const limit of [0, 1, 100, 2_000, count, 2 * count]) expect(list(limit)).toEqual(sorted.slice(0, limit))
})
