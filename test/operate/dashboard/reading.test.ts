import { describe, expect, test } from 'vitest'
import { ActivityRecorder, durationBounds } from '../../../src/inbox/operations/activity.ts'
import { showBytes } from '../../../src/operate/dashboard/reading/bytes.ts'
import { estimateQuantile, periods, toSlots } from '../../../src/operate/dashboard/reading/slots.ts'
import { makeTemplate } from '../../../src/operate/dashboard/reading/template.ts'
import { readTraceId } from '../../../src/operate/dashboard/reading/trace-id.ts'

describe('two messages have one cause', () => {
  test.each([
    ['timed out after 3001 ms', 'timed out after 2999 ms'],
    ['no media 9b2d7c1e-58a4-4f5f-8a36-2f5f0b7d9f10', 'no media 00000000-0000-4000-8000-000000000001'],
    ['no media "Holiday.mp4"', 'no media "Interview, with \'quotes\'.mov"'],
    ['no media "Holiday.mp4"', 'no media ""><script>alert(1)</script>"'],
    ['no media "Holiday.mp4", so no mail', 'no media "><img title="x"/>", so no mail'],
    ["no media 'a'", "no media 'b'"],
    ['no media “a”', 'no media “b”'],
    ['connect ECONNREFUSED 10.0.0.1:5432', 'connect ECONNREFUSED 10.0.0.12:5433'],
    ['at 0xdeadbeef', 'at 0xcafe'],
    ['two\n  lines', 'two lines'],
    ['the CMS answered 404 for media 437', 'the CMS answered 404 for media 512'],
    ['error in media 412', 'error in media 437'],
    ['timeout of 500 ms', 'timeout of 450 ms'],
    ['no film (id 404)', 'no film (id 503)'],
    ['Error: 412 of 437 parts', 'Error: 413 of 438 parts'],
    ['status 4041', 'status 5031'],
    ['object 5f2b9c81aa01bb02cc03dd04 is gone', 'object a1b2c3d4e5f60718293a4b5c is gone'],
    [`a long one ${'x'.repeat(1_000)}`, `a long one ${'x'.repeat(2_000)}`],
  ])('%j and %j', (a, b) => {
    expect(makeTemplate(a)).toBe(makeTemplate(b))
  })

  test.each([
    ['the catalogue is down', 'the catalogue is slow'],
    ['no media "a" on the disk "b"', 'no media "a" in the mail "b"'],
    ["can't reach the user's file", "can't read the user's file"],
    ['the CMS answered 404', 'the CMS answered 503'],
    ['Request failed with status code 404', 'Request failed with status code 500'],
    ['HTTP/1.1 502', 'HTTP/1.1 504'],
    ['Error: 404 Not Found', 'Error: 503 Service Unavailable'],
    ['upload failed (403)', 'upload failed (429)'],
    ['exited with code 1', 'exited with code 137'],
    ['error code P2002', 'error code P2025'],
    ['Cannot read properties of undefined', 'Cannot read properties of null'],
  ])('but not %j and %j', (a, b) => {
    expect(makeTemplate(a)).not.toBe(makeTemplate(b))
  })
})

describe('bytes', () => {
  const shown = (...bytes: number[]) => showBytes(new Uint8Array(bytes))

  test('that are UTF-8 are a text, in which control characters and directions are written out', () => {
    expect(showBytes(new TextEncoder().encode('{"title":"a\u202eb\u0000c\td\n"}'))).toEqual({
      text: '{"title":"a\\u202eb\\u0000c\td\n"}',
      isDump: false,
    })
  })

  test('that are not are a dump', () => {
    expect(shown(0x7b, 0xff, 0x00)).toEqual({
      text: `00000000  7b ff 00${' '.repeat(39)}  {..`,
      isDump: true,
    })
  })

  test('are dumped up to 4,096', () => {
    const { text } = showBytes(new Uint8Array(65_536).fill(0xff))
    expect(text.split('\n')).toHaveLength(257)
    expect(text).toContain('… 61440 more bytes')
  })
})

describe('the slots of a period', () => {
  const now = new Date('2026-03-01T12:34:56Z')

  test.each(periods)('of the $name end with the current one', (period) => {
    const slots = toSlots([], period, now)
    expect(slots).toHaveLength(period.slots)
    expect(now.getTime() - Number(slots.at(-1)?.startedAt)).toBeLessThan(period.slotMs)
    expect(Number(slots.at(-1)?.startedAt) - Number(slots[0]?.startedAt)).toBe((period.slots - 1) * period.slotMs)
  })

  test('add up their minutes', () => {
    const recorder = new ActivityRecorder()
    recorder.delivery({ outcome: 'accepted', status: 200, durationMs: 3 })
    recorder.delivery({ outcome: 'duplicate', status: 200, durationMs: 1 })
    recorder.attempt({ outcome: 'retried', sinceReceivedMs: 1 })
    recorder.attempt({ outcome: 'handled', sinceReceivedMs: 40 })
    const [minute] = recorder.since(new Date(0))
    if (minute === undefined) throw new Error('a minute was recorded')
    const minutes = [0, 1, 16].map((ago) => ({ ...minute, startedAt: new Date(now.getTime() - ago * 60_000) }))
    const day = toSlots(minutes, periods[1], now)
    const counts = day.map(({ accepted, duplicates, handled, failed }) => [accepted, duplicates, handled, failed])
    expect(counts.slice(-2)).toEqual([
      [1, 1, 1, 1],
      [2, 2, 2, 2],
    ])
    expect(day.at(-1)?.handling.reduce((sum, count) => sum + count)).toBe(2)
  })
})

describe('a quantile', () => {
  const durations = (counts: Record<number, number>) =>
    [...durationBounds, Number.POSITIVE_INFINITY].map((bound) => counts[bound] ?? 0)

  test('of no durations is unknown', () => {
    expect(estimateQuantile(durations({}), 0.5)).toBe(undefined)
  })

  test.each([
    [{ 10: 100 }, 0.5, 7.5],
    [{ 10: 100 }, 1, 10],
    [{ 1: 50, 1000: 50 }, 0.5, 1],
    [{ 1: 98, 1000: 2 }, 0.99, 750],
    [{ Infinity: 1 }, 0.5, 3_600_000],
  ])('of %j, %d, is %d ms', (counts, part, ms) => {
    expect(estimateQuantile(durations(counts), part)).toBeCloseTo(ms, 6)
  })
})

test.each([
  [{ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }, '0af7651916cd43dd8448eb211c80319c'],
  [{ traceparent: '<script>' }, undefined],
  [{ b3: '1' }, undefined],
  [undefined, undefined],
])('the trace id in %j is %s', (trace, id) => {
  expect(readTraceId(trace)).toBe(id)
})
