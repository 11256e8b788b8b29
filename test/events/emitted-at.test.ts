import { describe, expect, test } from 'vitest'
import { eventOf, flat } from './received.ts'

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

  // `Date` parses each of these, those without an offset in the local time zone.
  test.each([
    '2026-03-01T12:00:00',
    '2026-03-01T12:00:00.123456789',
    '2026-03-01',
    '2026-03-01 12:00:00Z',
    '2026-03-01T12:00:00+0200',
    '+012026-03-01T12:00:00Z',
  ])('is not parsed from %j, which is not RFC 3339', async (text) => {
    expect(await emittedAt(text)).toBeUndefined()
  })

  // `Date` parses each of these as a time in 2001, in the local time zone.
  test.each(['soon 1', '5', 'attempt 3', '1-2', 'March 7'])('is not parsed from %j', async (text) => {
    expect(await emittedAt(text)).toBeUndefined()
  })

  test.each([
    [1_772_366_400, '2026-03-01T12:00:00.000Z'],
    [1_772_366_400.25, '2026-03-01T12:00:00.250Z'],
    [1_772_366_400_123, '2026-03-01T12:00:00.123Z'],
    [1e9, '2001-09-09T01:46:40.000Z'],
    [1e11 - 1, '5138-11-16T09:46:39.000Z'],
    [1e12, '2001-09-09T01:46:40.000Z'],
  ])('is read from the number %d, which is seconds or milliseconds since the epoch', async (number, expected) => {
    const event = await eventOf({ ...flat, emitted_at: number })
    expect(event.emittedAt?.toISOString()).toBe(expected)
    expect(event.issues).toEqual(['emitted_at'])
  })

  test.each([0, 1, -1_772_366_400, 1e9 - 1, 1e11, 1e12 - 1, 1e14, 1_772_366_400_123_456, 1e308])(
    'is undefined for the number %d, which is neither',
    async (number) => {
      const event = await eventOf({ ...flat, emitted_at: number })
      expect(event.emittedAt).toBeUndefined()
      expect(event).toMatchObject({ issues: ['emitted_at'], payload: { emitted_at: number } })
    },
  )
})
