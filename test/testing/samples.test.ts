import { describe, expect, test } from 'vitest'
import { createReceiver, eventTypes, type MediaEvent, unverified } from '../../src/index.ts'
import { deliver, encodePayload, samplePayload } from '../../src/testing/index.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe.each(eventTypes)('the sample of %s', (type) => {
  test.each(['flat', 'envelope'] as const)('is an event of its type in the %s format', async (format) => {
    const events: MediaEvent[] = []
    const receiver = createReceiver({ verify: unverified() }).onAny((event) => void events.push(event))
    await (await deliver(receiver, samplePayload(type), { format })).handled
    expect(events).toMatchObject([{ type, format, mediaId: '0f8fad5b-d9cb-469f-a165-70867728950e', test: false }])
    expect(events[0]?.emittedAt).toEqual(new Date('2026-03-01T12:00:00.123Z'))
  })

  test('is the same every time', () => {
    expect(samplePayload(type)).toEqual(samplePayload(type))
    expect(encodePayload(samplePayload(type))).toEqual(encodePayload(samplePayload(type), 'flat'))
  })
})

describe('samplePayload', () => {
  test('accepts other values for any field', () => {
    const payload = samplePayload('partial.finished', { media_id: 'm1', qualities: '720p' })
    expect(payload).toEqual({ ...samplePayload('partial.finished'), media_id: 'm1', qualities: '720p' })
    expect(samplePayload('partial.finished').media_id).not.toBe('m1')
  })

  test('is a different event with another media id or another time', async () => {
    const receiver = createReceiver({ verify: unverified() }).onAny(() => {})
    const outcomeOf = async (fields = {}) => (await deliver(receiver, samplePayload('file.received', fields))).outcome
    expect(await outcomeOf()).toBe('accepted')
    expect(await outcomeOf()).toBe('duplicate')
    expect(await outcomeOf({ title: 'renamed.mp4' })).toBe('duplicate')
    expect(await outcomeOf({ media_id: 'm1' })).toBe('accepted')
    expect(await outcomeOf({ emitted_at: '2026-03-01T12:00:00.123456788Z' })).toBe('accepted')
  })
})

describe('encodePayload', () => {
  test('throws for a format that it does not know', () => {
    expect(() => encodePayload(samplePayload('file.received'), 'xml' as 'flat')).toThrow(
      expect.objectContaining({
        code: 'invalid_option',
        message: 'encodePayload: format must be one of flat, envelope',
      }),
    )
  })

  test('writes the fields in the order of the service', () => {
    expect(text(encodePayload(samplePayload('partial.finished')))).toBe(
      '{"type":"partial.finished","emitted_at":"2026-03-01T12:00:00.123456789Z",' +
        '"media_id":"0f8fad5b-d9cb-469f-a165-70867728950e","qualities":"360p","title":"holiday.mp4","status":"",' +
        '"media_type":"video","user_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7"}',
    )
  })

  test('writes the envelope with its names in camelCase', () => {
    const { event, data } = JSON.parse(text(encodePayload(samplePayload('encoding.failed'), 'envelope')))
    expect(event).toBe('encoding.failed')
    expect(Object.keys(data)).toEqual(['videoId', 'emittedAt', 'qualities', 'title', 'status', 'mediaType', 'userId'])
  })
})
