import { queryObjects } from 'node:v8'
import { expect, onTestFinished, test, vi } from 'vitest'
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
    expectations.apply(mediaId, { at: new Date(0), begins: [begin], ends: [] })
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

test('an event that is accepted after the stop begins none, whose timer would report to a closed inbox', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const accept = vi.fn(() => true)
  const expectations = new MemoryExpectations(accept, () => {})
  expectations.stop()
  const begin: Expectation = { rule: 'rule', dueAt: new Date(Date.now() + 10), overdue: eventOf('m', 'm') }
  expectations.apply('m', { at: new Date(0), begins: [begin], ends: [] })
  vi.advanceTimersByTime(hour)
  expect([expectations.size, accept.mock.calls, vi.getTimerCount()]).toEqual([0, [], 0])
})

/** Expectations of one rule, which are due when the test says so. */
function watching() {
  const handedOver: string[] = []
  const expectations = new MemoryExpectations(
    ({ event }) => handedOver.push(event.key) > 0,
    () => {},
  )
  onTestFinished(() => expectations.stop())
  const begin = (key: string, at: number, mediaId = 'm1') => {
    const dueAt = new Date(Date.now() + hour)
    const begins: Expectation[] = [{ rule: 'rule', dueAt, overdue: eventOf(key, mediaId) }]
    expectations.apply(mediaId, { at: new Date(at), begins, ends: [] })
  }
  const end = (at: number, mediaId = 'm1') =>
    expectations.apply(mediaId, { at: new Date(at), begins: [], ends: ['rule'] })
  return { expectations, begin, end }
}

test('a media item without an open expectation is forgotten', () => {
  const { begin, end } = watching()
  const countSets = () => queryObjects(Set, { format: 'count' })
  const setsBefore = countSets()
  for (let i = 0; i < 1_000; i++) {
    begin('begun', 1, `m${i}`)
    end(1, `m${i}`)
  }
  expect(countSets() - setsBefore).toBeLessThan(100)
})

test('of more than 100,000 the later ones have no room', () => {
  const dropped = vi.fn()
  const expectations = new MemoryExpectations(() => true, dropped)
  onTestFinished(() => expectations.stop())
  const dueAt = new Date(Date.now() + hour)
  const { event, receivedAt } = eventOf('m', 'm')
  const begin: Expectation = { rule: 'rule', dueAt, overdue: { event: { ...event, payload: {} }, receivedAt } }
  expectations.apply('m', { at: new Date(1), begins: Array(100_001).fill(begin), ends: [] })
  expect([expectations.size, dropped.mock.calls.length]).toEqual([100_000, 1])
})

test('those that take too much memory have no room, until others end', () => {
  const dropped = vi.fn()
  const expectations = new MemoryExpectations(() => true, dropped)
  onTestFinished(() => expectations.stop())
  const begin = (mediaId: string) => {
    const { event, receivedAt } = eventOf(mediaId, mediaId)
    // 64 MiB with two bytes for each character. The text is not written out.
    const overdue = { event: { ...event, payload: { title: 't'.repeat(2 ** 25) } }, receivedAt }
    const begins: Expectation[] = [{ rule: 'rule', dueAt: new Date(Date.now() + hour), overdue }]
    expectations.apply(mediaId, { at: new Date(1), begins, ends: [] })
  }
  for (const mediaId of ['m1', 'm2', 'm3']) begin(mediaId)
  expect(dropped.mock.calls).toMatchObject([[{ mediaId: 'm3' }]])
  expectations.apply('m1', { at: new Date(2), begins: [], ends: ['rule'] })
  begin('m3')
  expect(expectations.list(10).map(({ mediaId }) => mediaId)).toEqual(['m2', 'm3'])
})

test('ends of media items with long ids take the place of older ones', () => {
  const { expectations, begin, end } = watching()
  end(20)
  for (let i = 0; i < 32; i++) end(20, `${i}${'m'.repeat(2 ** 19)}`)
  begin('forgotten', 15)
  expect(expectations.size).toBe(1)
  begin('remembered', 15, `31${'m'.repeat(2 ** 19)}`)
  expect(expectations.size).toBe(1)
})
