import { describe, expect, test } from 'vitest'
import { faultsOf, trendsOf } from './judge.ts'
import type { Sample } from './sample.ts'
import { slopeOf } from './slope.ts'

const totals = { accepted: 60_000, duplicates: 15_000, rejected: 0, handled: 60_000 }
/** Makes the samples of an hour with 1,000 events a minute, at each of which the heap grows. */
const samples = (bytesPerEvent: number): readonly Sample[] =>
  Array.from({ length: 240 }, (_, i) => {
    const [minute, events] = [i / 4, i * 250]
    const noise = i % 2 === 0 ? 300_000 : -300_000
    return { minute, events, heap: 3e7 + noise + events * bytesPerEvent, rss: 1.5e8, size: 1e7 }
  })

describe('the slope of memory', () => {
  test('is that of the line through the points', () => {
    const line = [1, 2, 3, 10].map((x) => [x, 7 - 3 * x] as const)
    expect(slopeOf(line)).toBeCloseTo(-3)
  })

  test('is given per minute and per event, over the second half', () => {
    const [heap, rss] = trendsOf(samples(100))
    expect(heap).toMatchObject({
      quantity: 'heap',
      perMinute: expect.closeTo(100_000, -4),
      perEvent: expect.closeTo(100, -1),
    })
    expect(rss).toMatchObject({ quantity: 'rss', perMinute: 0, perEvent: 0 })
  })

  test('is right if it is flat, and wrong if the key of each event is kept', () => {
    expect(faultsOf(samples(0), totals)).toEqual([])
    expect(faultsOf(samples(200), totals)).toEqual(['heap rose by 5.9 MB, more than 1.2 MB'])
  })

  test('proves nothing without duplicates, or with events that were not handled', () => {
    expect(faultsOf(samples(0), { ...totals, duplicates: 0 })).toEqual(['too few duplicates were recognised'])
    expect(faultsOf(samples(0), { ...totals, handled: 1 })).toEqual(['60000 events were accepted and 1 handled'])
    expect(faultsOf([], totals)).toContain('0 samples are too few')
  })
})
