import { describe, expect, test } from 'vitest'
import { envelope, eventOf, flat, mediaId, rejectionOf } from './received.ts'

const marker = 'value-marker-71c3'
const wrongTypes: [what: string, value: unknown][] = [
  ['a number with a fraction', 71_309_115.5],
  ['a boolean', false],
  ['an object', { marker }],
  ['a list', [marker]],
]

/** The optional fields: their names in the payload, in the event, and in an envelope. */
const optional: [wire: string, property: string, camelCase: string][] = [
  ['media_type', 'mediaType', 'mediaType'],
  ['title', 'title', 'title'],
  ['status', 'status', 'status'],
  ['user_id', 'userId', 'userId'],
  ['emitted_at', 'emittedAt', 'emittedAt'],
]

const malformedField = (field: string, expected: string) => `400 malformed: field ${field}: expected ${expected}`

describe.each(optional)('the field %s', (wire, property, camelCase) => {
  const sent = wire === 'emitted_at' ? '2026-03-01T12:00:00Z' : `${marker} 😀`
  const read = wire === 'emitted_at' ? new Date(sent) : sent

  test('is read in both formats, and in an envelope in snake case and in camel case', async () => {
    for (const payload of [{ ...flat, [wire]: sent }, envelope({ [wire]: sent }), envelope({ [camelCase]: sent })]) {
      expect(await eventOf(payload)).toHaveProperty(property, read)
    }
  })

  test.each([null, '', undefined])('is absent when it is sent as %o', async (value) => {
    for (const payload of [{ ...flat, [wire]: value }, envelope({ [wire]: value }), envelope({ [camelCase]: value })]) {
      expect(await eventOf(payload)).toHaveProperty(property, undefined)
    }
  })

  test.each(wrongTypes)('is undefined and an issue when it is %s', async (_, value) => {
    for (const [payload, name] of [
      [{ ...flat, [wire]: value }, wire],
      [envelope({ [wire]: value }), `data.${wire}`],
      [envelope({ [camelCase]: value }), `data.${camelCase}`],
    ] as const) {
      const event = await eventOf(payload)
      expect(event).toHaveProperty(property, undefined)
      expect(event).toMatchObject({ mediaId, issues: [name], payload })
    }
  })
})

describe('the field qualities', () => {
  test.each([
    ['360p,720p', ['360p', '720p']],
    ['720p,360p', ['720p', '360p']],
    ['360p', ['360p']],
    [' 360p , 720p ', ['360p', '720p']],
    [',360p,,', ['360p']],
    [',', []],
    ['', []],
    [null, []],
    [undefined, []],
  ])('is read from %j', async (qualities, read) => {
    expect((await eventOf({ ...flat, qualities })).qualities).toEqual(read)
    expect((await eventOf(envelope({ qualities }))).qualities).toEqual(read)
  })

  test.each<[unknown, readonly string[]]>([
    [
      ['360p', '720p'],
      ['360p', '720p'],
    ],
    [[' 360p ', ''], ['360p']],
    [[], []],
    [['360p', 720], []],
    [[['360p']], []],
    [{ marker }, []],
    [360, []],
    [true, []],
  ])('is an issue, and read if it is a list of names: %j', async (qualities, read) => {
    expect(await eventOf({ ...flat, qualities })).toMatchObject({ qualities: read, issues: ['qualities'] })
    expect(await eventOf(envelope({ qualities }))).toMatchObject({ qualities: read, issues: ['data.qualities'] })
  })

  test.each([
    ['360p', '360p'],
    ['720p,360p', '720p'],
    [['720p'], '720p'],
    ['', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('gives partial.finished its quality: %j', async (qualities, quality) => {
    for (const payload of [
      { ...flat, type: 'partial.finished', qualities },
      envelope({ qualities }, 'partial_finished'),
    ]) {
      const event = await eventOf(payload)
      expect(event).toHaveProperty('quality', quality)
    }
  })

  test('gives no other event a quality', async () => {
    expect(await eventOf({ ...flat, qualities: '360p' })).not.toHaveProperty('quality')
    expect(await eventOf({ ...flat, type: 'partial.begun', qualities: '360p' })).not.toHaveProperty('quality')
  })
})

describe('a required field', () => {
  test.each(['type', 'media_id'])('%s is malformed when it is absent or cannot be read', async (field) => {
    for (const value of [undefined, null, '', ...wrongTypes.map(([, value]) => value)]) {
      expect(await rejectionOf({ ...flat, [field]: value })).toBe(malformedField(field, 'a non-empty string'))
    }
  })

  test('is the media id of an envelope, under any of its names', async () => {
    for (const name of ['videoId', 'video_id', 'mediaId', 'media_id']) {
      expect(await eventOf({ event: 'encoding.finished', data: { [name]: mediaId } })).toMatchObject({ mediaId })
      const others = { videoId: '', video_id: null, mediaId: '', media_id: null, [name]: mediaId }
      expect(await eventOf({ event: 'encoding.finished', data: others })).toMatchObject({ mediaId })
      for (const [, value] of wrongTypes) {
        const payload = { event: 'encoding.finished', data: { [name]: value } }
        expect(await rejectionOf(payload)).toBe(malformedField('data.videoId', 'a non-empty string'))
      }
    }
  })

  test.each([undefined, null, ''])('is malformed in an envelope when it is %o', async (videoId) => {
    expect(await rejectionOf(envelope({ videoId }))).toBe(malformedField('data.videoId', 'a non-empty string'))
  })

  test.each([undefined, null, 'text', 7, []])('is looked for in an object, not in %o', async (data) => {
    expect(await rejectionOf({ event: 'encoding.finished', data })).toBe(malformedField('data', 'an object'))
  })

  test('is the data of an envelope', async () => {
    for (const data of [undefined, null, '', marker, ...wrongTypes.map(([, value]) => value)]) {
      const rejection = await rejectionOf({ event: 'encoding.finished', data })
      expect(rejection).toMatch(/^400 malformed: field data(\.videoId)?: expected /)
      expect(rejection).not.toContain(marker)
    }
  })

  test('may be any string, white space included', async () => {
    expect(await eventOf({ type: ' ', media_id: ' ' })).toMatchObject({ type: ' ', mediaId: ' ' })
  })
})

describe('an id that is a number', () => {
  test.each([0, 42, -1, Number.MAX_SAFE_INTEGER])('is its text: %d', async (id) => {
    const flatEvent = await eventOf({ ...flat, media_id: id, user_id: id })
    expect(flatEvent).toMatchObject({ mediaId: `${id}`, userId: `${id}`, issues: ['media_id', 'user_id'] })
    for (const name of ['videoId', 'video_id', 'mediaId', 'media_id']) {
      const event = await eventOf({ event: 'encoding.finished', data: { [name]: id } })
      expect(event).toMatchObject({ mediaId: `${id}`, issues: [`data.${name}`] })
    }
  })

  test('is not read if it is too large to be exact', async () => {
    const beyond = '{"type":"a","media_id":9007199254740993}'
    expect(await rejectionOf(beyond)).toBe(malformedField('media_id', 'a non-empty string'))
  })
})

test('a field that only the envelope has is not read from a flat payload, also if another field is of another type', async () => {
  const unknown = { emittedAt: { toString: { toJSON: 1 } }, userId: {}, mediaType: 1 }
  const event = await eventOf({ ...flat, user_id: ['%s'], ...unknown })
  expect(event).toMatchObject({ issues: ['user_id'], payload: unknown })
  expect([event.emittedAt, event.userId, event.mediaType]).toEqual([undefined, undefined, undefined])
})

describe('the issues of an event', () => {
  test('are empty if every field is text, absent, null or empty', async () => {
    for (const payload of [flat, { ...flat, title: null, status: '', extra: 7 }, envelope({ title: null })])
      expect((await eventOf(payload)).issues).toEqual([])
  })

  test('name every field of another JSON type', async () => {
    const { issues } = await eventOf({ ...flat, media_type: 1, title: {}, status: [], extra: 1 })
    expect(issues.toSorted()).toEqual(['media_type', 'status', 'title'])
  })

  test('do not hide another spelling of the field', async () => {
    const event = await eventOf(envelope({ user_id: {}, userId: 'u1', videoId: mediaId, media_id: [] }))
    expect(event).toMatchObject({ mediaId, userId: 'u1' })
    expect(event.issues.toSorted()).toEqual(['data.media_id', 'data.user_id'])
  })
})

describe('a payload with unknown parts', () => {
  test('keeps unknown fields in the payload, in the order in which they were sent', async () => {
    const payload = { zeta: [1, { b: null }], ...flat, alpha: 'x' }
    const event = await eventOf(payload)
    expect(event.payload).toEqual(payload)
    expect(JSON.stringify(event.payload)).toBe(JSON.stringify(payload))
    expect(event).not.toHaveProperty('zeta')
    expect((await eventOf(envelope({ alpha: 1 }))).payload).toEqual(envelope({ alpha: 1 }))
  })

  test('keeps unknown values as they are', async () => {
    const words = { status: 'paused', media_type: 'hologram', qualities: '16k' }
    const event = await eventOf({ ...flat, ...words })
    expect(event).toMatchObject({ status: 'paused', mediaType: 'hologram', qualities: ['16k'] })
  })

  test.each(['video.deleted', 'encoding_finished', 'ENCODING.FINISHED', '__proto__', 'constructor', 'π'])(
    'becomes an event of the unknown type %s',
    async (type) => {
      expect(await eventOf({ ...flat, type })).toMatchObject({ type, mediaId })
    },
  )
})

describe('the test delivery', () => {
  test('is recognised by the nil media id, in both formats', async () => {
    const nil = '00000000-0000-0000-0000-000000000000'
    expect((await eventOf({ ...flat, media_id: nil })).test).toBe(true)
    expect((await eventOf(envelope({ videoId: nil }))).test).toBe(true)
    expect((await eventOf(flat)).test).toBe(false)
    expect((await eventOf({ ...flat, title: 'Test.mp4', qualities: '720p', status: '' })).test).toBe(false)
  })
})
