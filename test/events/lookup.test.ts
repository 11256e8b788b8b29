import { describe, expect, test } from 'vitest'
import { type LookedUpEvent, lifecycleKey } from '../../src/index.ts'
import { samplePayload } from '../../src/testing/index.ts'
import { eventOf, lookedUp } from './received.ts'

const least = { type: 'encoding.finished', mediaId: 'm1' } as const

describe('the event of a look-up', () => {
  test('has the fields of the look-up, and the payload that the service would have sent', async () => {
    const found = {
      ...least,
      emittedAt: '2026-03-01T12:00:00.123456789Z',
      qualities: ['360p', '720p'],
      title: 'Holiday.mp4',
      status: 'done',
      mediaType: 'video',
      userId: 'u1',
    } satisfies LookedUpEvent
    const event = await lookedUp(found)
    expect(event).toMatchObject({ ...found, emittedAt: new Date(found.emittedAt), source: 'lookup', format: 'flat' })
    expect(Object.entries(event.payload)).toEqual([
      ['type', 'encoding.finished'],
      ['emitted_at', found.emittedAt],
      ['media_id', 'm1'],
      ['qualities', '360p,720p'],
      ['title', 'Holiday.mp4'],
      ['status', 'done'],
      ['media_type', 'video'],
      ['user_id', 'u1'],
    ])
    expect([event, event.qualities, event.payload].every(Object.isFrozen)).toBe(true)
  })

  test('has the key of the delivery if every field of the key is the same', async () => {
    const payload = samplePayload('encoding.finished', { media_id: 'm1', title: 'Holiday.mp4' })
    const delivered = await eventOf(payload)
    const { emitted_at: emittedAt, qualities, status, user_id: userId } = payload
    const found = await lookedUp({ ...least, emittedAt, qualities: qualities.split(','), status, userId })
    expect(found.key).toBe(delivered.key)
    expect(delivered.source).toBe('delivery')
  })

  test('takes a date, and names the quality of partial.finished', async () => {
    const emittedAt = new Date('2026-03-01T12:00:00Z')
    expect(await lookedUp({ ...least, emittedAt })).toMatchObject({ emittedAt })
    expect(await lookedUp({ ...least, type: 'partial.finished', qualities: ['360p'] })).toMatchObject({
      quality: '360p',
    })
  })

  test('leaves out what is null, undefined or empty', async () => {
    const { payload } = await lookedUp({ ...least, title: null, status: '', userId: undefined, qualities: [] })
    expect(payload).toEqual({ type: 'encoding.finished', media_id: 'm1' })
  })

  test.each([
    ['no object', null, 'field type: expected one of file.received, '],
    ['no type', { mediaId: 'm1' }, 'field type: expected one of file.received, '],
    ['an unknown type', { ...least, type: 'encoding.done' }, 'field type: expected one of file.received, '],
    ['a type of the receiver itself', { ...least, type: 'expectation.overdue' }, 'field type: expected one of'],
    ['no media id', { type: 'encoding.finished' }, 'field mediaId: expected a non-empty string'],
    ['a media id that is a number', { ...least, mediaId: 7 }, 'field mediaId: expected a string'],
    ['qualities that are not a list', { ...least, qualities: '360p' }, 'field qualities: expected a list of names'],
    ['two qualities in one name', { ...least, qualities: ['360p,720p'] }, 'field qualities: expected a list of names'],
    [
      'a time without an offset',
      { ...least, emittedAt: '2026-03-01T12:00:00' },
      'field emittedAt: expected a valid Date',
    ],
    ['an invalid date', { ...least, emittedAt: new Date(Number.NaN) }, 'field emittedAt: expected a valid Date'],
    ['a time that is a number', { ...least, emittedAt: 1772366400 }, 'field emittedAt: expected a string'],
    ['a field that does not exist', { ...least, videoId: 'm1' }, 'there is no field videoId'],
  ])('is malformed with %s', async (_, found, message) => {
    await expect(lookedUp(found as never)).rejects.toMatchObject({
      code: 'malformed',
      message: expect.stringContaining(message),
    })
  })
})

describe('lifecycleKey', () => {
  const keyOf = async (...[type, fields]: Parameters<typeof samplePayload>) =>
    lifecycleKey(await eventOf(samplePayload(type, { media_id: 'm1', ...fields })))

  test('is equal for a delivery and a look-up of the event, in whatever order the qualities are', async () => {
    const key = await keyOf('encoding.finished', { qualities: '360p,720p' })
    expect(lifecycleKey(await lookedUp({ ...least, qualities: ['720p', '360p'] }))).toBe(key)
  })

  test('is another one for another type, media item or list of qualities', async () => {
    const keys = await Promise.all([
      keyOf('encoding.finished', { qualities: '360p,720p' }),
      keyOf('encoding.finished', { qualities: '360p' }),
      keyOf('encoding.finished', { qualities: '360p,720p', media_id: 'm2' }),
      keyOf('partial.finished', { qualities: '360p' }),
      keyOf('encoding.failed', { qualities: '360p,720p' }),
    ])
    expect(new Set(keys).size).toBe(5)
  })

  test('keeps the events of two principals apart', async () => {
    const found = { ...least, qualities: ['360p'] }
    const keys = await Promise.all(['acme', 'zoo', undefined].map((principal) => lookedUp({ ...found, principal })))
    expect(new Set(keys.map(lifecycleKey)).size).toBe(3)
  })

  test('leaves their own keys to test deliveries and to events of unknown types', async () => {
    const nil = '00000000-0000-0000-0000-000000000000'
    for (const fields of [{ media_id: nil }, { type: 'view.counted' }]) {
      const event = await eventOf({ ...samplePayload('encoding.started'), ...fields })
      expect(lifecycleKey(event)).toBe(event.key)
    }
  })
})
