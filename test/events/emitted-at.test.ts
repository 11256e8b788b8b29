import { describe, expect, test } from 'vitest'
import { eventOf, flat } from './fixture.ts'

const emittedAt = async (emitted_at: string) => (await eventOf({ ...flat, emitted_at })).emittedAt

describe('emittedAt', () => {
  test.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.1Z', '2026-03-01T12:00:00.100Z'],
    ['2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.123456Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.123456789Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.999999999Z', '2026-03-01T12:00:00.999Z'],
    ['2026-03-01T14:00:00+02:00', '2026-03-01T12:00:00.000Z'],
    ['2024-02-29T23:59:59.5-01:30', '2024-03-01T01:29:59.500Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ])('is read from %s to the millisecond', async (text, expected) => {
    expect((await emittedAt(text))?.toISOString()).toBe(expected)
  })

  test.each([
    'yesterday',
    'soon',
    '2026-13-01T12:00:00Z',
    '2026-03-01T25:00:00Z',
    '2026-03-01T12:00:00.Z',
    '٢٠٢٦-03-01T12:00:00Z',
    '9'.repeat(400),
    '\u0000',
  ])('is undefined for %j, and the string stays in the payload', async (text) => {
    const event = await eventOf({ ...flat, emitted_at: text })
    expect(event.emittedAt).toBeUndefined()
    expect(event.payload['emitted_at']).toBe(text)
  })

  // `Date` parses each of these as a time in 2001, in the local time zone.
  test.each(['soon 1', '5', 'attempt 3', '1-2', 'March 7'])('is not parsed from %j', async (text) => {
    expect(await emittedAt(text)).toBeUndefined()
  })
})
