import { describe, expect, test } from 'vitest'
import { eventTypes } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { envelope, eventOf, flat, mediaId, rejectionOf } from './received.ts'

describe.each(eventTypes)('%s', (type) => {
  test('is the same event in both formats', async () => {
    const payload = samplePayload(type)
    const { format, payload: sent, ...event } = await eventOf(encodePayload(payload, 'flat'))
    const other = await eventOf(encodePayload(payload, 'envelope'))
    expect([format, other.format]).toEqual(['flat', 'envelope'])
    expect(sent).toEqual(payload)
    expect(other).toMatchObject(event)
    expect(event).toMatchObject({ type, mediaId, emittedAt: new Date('2026-03-01T12:00:00.123Z'), test: false })
  })

  test('may be named with an underscore in an envelope', async () => {
    expect(await eventOf(envelope({}, type.replace('.', '_')))).toMatchObject({ type, format: 'envelope' })
  })
})

describe('the format of a payload', () => {
  test('is flat if `type` is a string', async () => {
    const both = { ...flat, ...envelope({ videoId: 'other', title: 'other' }, 'file_received') }
    expect(await eventOf(both)).toMatchObject({ format: 'flat', type: flat.type, mediaId, title: undefined })
    expect(await rejectionOf({ type: 'encoding.finished', ...envelope() })).toMatch(/field media_id/)
  })

  test.each([null, '', undefined, 7, {}])('is the envelope if the type is %o', async (type) => {
    expect(await eventOf({ type, ...envelope() })).toMatchObject({ format: 'envelope', type: 'encoding.finished' })
  })

  test('is flat if there is neither a type nor an event name', async () => {
    for (const event of [undefined, null, '', 7]) {
      expect(await rejectionOf({ event, data: { videoId: mediaId } })).toMatch(/^400 malformed: field type/)
    }
  })

  test('leaves unknown names of an envelope as they are', async () => {
    for (const name of ['video_deleted', 'encoding_finished_late', 'video.deleted']) {
      expect(await eventOf(envelope({}, name))).toMatchObject({ type: name })
    }
  })

  test('may mix camelCase and snake_case in an envelope, and prefers snake_case if both have a value', async () => {
    const data = { media_type: 'audio', userId: 'u1', user_id: 'u2', emitted_at: '', emittedAt: '2026-03-01T12:00:00Z' }
    expect(await eventOf(envelope(data))).toMatchObject({
      mediaType: 'audio',
      userId: 'u2',
      emittedAt: new Date('2026-03-01T12:00:00Z'),
    })
  })
})
