import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyInput } from '../../src/events/kept-input.ts'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { parseDelivery } from '../../src/events/parse.ts'
import type { MediaEvent } from '../../src/index.ts'
import { encodePayload, type Payload, samplePayload } from '../../src/testing/index.ts'
import { envelope, eventOf, flat } from './received.ts'

const delivery = { method: 'POST', url: '/', headers: new Headers(), body: new Uint8Array() }

/** Returns the event key of a delivery with this payload. */
async function keyOf(payload: object): Promise<string> {
  const parsing = { sender: mediaService, keySource: undefined, keyInput: new KeyInput(), maxValues: 100 }
  const parsed = await parseDelivery(parsing, new TextEncoder().encode(JSON.stringify(payload)), delivery)
  return (parsed as MediaEvent).key
}

const sample = samplePayload('encoding.finished')
const withoutTime = { ...sample, emitted_at: '' }
const keyFields = ['type', 'media_id', 'user_id', 'emitted_at', 'qualities', 'status'] as const

describe('the event key', () => {
  test('is the same for every retry', async () => {
    const { key } = await eventOf(encodePayload(sample))
    expect((await eventOf(encodePayload(sample))).key).toBe(key)
    expect(await keyOf(Object.fromEntries(Object.entries(sample).reverse()))).toBe(key)
    expect(await keyOf({ ...sample, title: 'renamed.mp4', media_type: 'audio', extra: 1 })).toBe(key)
  })

  // Stores and dead letters hold keys, so their text must not change.
  test('is a JSON list of its fields, in which an absent field is an empty string', async () => {
    const { type, media_id, user_id, emitted_at, qualities, status } = sample
    expect(await keyOf(sample)).toBe(JSON.stringify([type, media_id, user_id, emitted_at, qualities, status]))
    expect(await keyOf({ type, media_id, emitted_at })).toBe(JSON.stringify([type, media_id, '', emitted_at, '', '']))
  })

  test('is the same in both formats', async () => {
    for (const fields of [{}, { user_id: '', qualities: '', status: '' }]) {
      const payload = samplePayload('partial.finished', fields)
      const { key } = await eventOf(encodePayload(payload, 'flat'))
      expect((await eventOf(encodePayload(payload, 'envelope'))).key).toBe(key)
    }
    const data = { emittedAt: sample.emitted_at }
    expect(await keyOf(envelope(data, 'encoding_finished'))).toBe(await keyOf(envelope(data, 'encoding.finished')))
  })

  test.each(keyFields)('differs if %s differs', async (field) => {
    expect(await keyOf({ ...sample, [field]: `${sample[field]}x` })).not.toBe(await keyOf(sample))
  })

  test.each(['user_id', 'qualities', 'status'])('is the same if %s is absent, null or empty', async (field) => {
    const key = await keyOf({ ...sample, [field]: '' })
    expect(await keyOf({ ...sample, [field]: null })).toBe(key)
    expect(await keyOf({ ...sample, [field]: undefined })).toBe(key)
  })

  test('keeps the time to the nanosecond, as a string', async () => {
    const at = (emitted_at: string) => keyOf({ ...sample, emitted_at })
    const keys = ['.123456789Z', '.123456788Z', '.123Z', '.1230Z', '.123+00:00'].map((end) =>
      at(`2026-03-01T12:00:00${end}`),
    )
    expect(new Set(await Promise.all(keys)).size).toBe(keys.length)
    expect(await at('no time')).not.toBe(await at('another'))
  })

  test('is never the same for two events', async () => {
    const part = fc.oneof(
      fc.constantFrom('', '"', '","', '\\', '\\"', ',', '[', ']', 'a', '\ud800', '\\ud800'),
      fc.string(),
    )
    const tuple = fc.tuple(
      ...keyFields.map((field) => (field === 'type' || field === 'media_id' ? part.map((p) => `x${p}`) : part)),
    )
    const payload = ([type, media_id, user_id, emitted_at, qualities, status]: string[]) =>
      ({ type, media_id, user_id, emitted_at: `t${emitted_at}`, qualities, status }) as object
    await fc.assert(
      fc.asyncProperty(tuple, tuple, async (a, b) => {
        const same = JSON.stringify(a) === JSON.stringify(b)
        expect((await keyOf(payload(a))) === (await keyOf(payload(b)))).toBe(same)
      }),
      { numRuns: 300 },
    )
  })

  test('is never the same when text moves from one field into the next', async () => {
    const cut = fc.tuple(fc.string({ maxLength: 12 }), fc.nat({ max: 12 }), fc.nat({ max: 12 }))
    const split = (text: string, at: number) => ({ ...sample, qualities: text.slice(0, at), status: text.slice(at) })
    await fc.assert(
      fc.asyncProperty(cut, async ([text, a, b]) => {
        const same = Math.min(a, text.length) === Math.min(b, text.length)
        expect((await keyOf(split(text, a))) === (await keyOf(split(text, b)))).toBe(same)
      }),
    )
  })

  test('distinguishes lone surrogates', async () => {
    const ids = ['\ud800', '\ud801', '\udc00', '\ufffd', '\\ud800']
    const keys = await Promise.all(
      ids.flatMap((id) => [keyOf({ ...sample, media_id: id }), keyOf({ ...withoutTime, media_id: id })]),
    )
    expect(new Set(keys).size).toBe(2 * ids.length)
    for (const key of keys) expect(key).not.toMatch(/\p{Surrogate}/u)
  })
})

describe('a long event key', () => {
  const ofLength = async (length: number) => {
    const shortest = (await keyOf({ ...sample, user_id: '' })).length
    return { ...sample, user_id: 'u'.repeat(length - shortest) }
  }

  test('is kept as it is up to 256 characters, and hashed above', async () => {
    expect(await keyOf(await ofLength(256))).toHaveLength(256)
    expect(await keyOf(await ofLength(257))).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test('still distinguishes events', async () => {
    const long = await ofLength(5_000)
    const key = await keyOf(long)
    expect(await keyOf({ ...long })).toBe(key)
    for (const field of keyFields) expect(await keyOf({ ...long, [field]: `${long[field]}x` })).not.toBe(key)
    expect(await keyOf({ ...long, media_id: '\ud800' })).not.toBe(await keyOf({ ...long, media_id: '\ud801' }))
  })
})

describe('without emitted_at, the event key', () => {
  test('covers the whole payload', async () => {
    const key = await keyOf(withoutTime)
    expect(key).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(await keyOf({ ...withoutTime })).toBe(key)
    for (const field of Object.keys(sample) as (keyof Payload)[]) {
      if (field !== 'emitted_at') expect(await keyOf({ ...withoutTime, [field]: `${sample[field]}x` })).not.toBe(key)
    }
    expect(await keyOf({ ...withoutTime, extra: 1 })).not.toBe(key)
  })

  test.each([
    ['integers beyond 2^53', '9007199254740992', '9007199254740993'],
    ['numbers beyond the largest', '1e400', 'null'],
    ['zeros', '0', '-0'],
    ['orders of keys', '{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['spaces', '1', ' 1'],
  ])('distinguishes two bodies that differ only in their %s', async (_, one, other) => {
    const key = async (extra: string) => (await eventOf(`{"type":"a","media_id":"m","extra":${extra}}`)).key
    expect(await key(one)).not.toBe(await key(other))
    expect(await key(one)).toBe(await key(one))
  })

  test('covers the payload if another parser consumed the body', async () => {
    expect(await keyOf({ ...flat, list: [1, 2] })).toBe(await keyOf({ ...flat, list: [1, 2] }))
    expect(await keyOf({ ...flat, list: [1, 2] })).not.toBe(await keyOf({ ...flat, list: [2, 1] }))
  })

  test('distinguishes values of different types', async () => {
    const values = [null, false, 0, '', '0', [], {}, [null], [[]], { '': null }, 'null', '[]']
    const keys = await Promise.all(values.map((extra) => keyOf({ ...flat, extra })))
    expect(new Set(keys).size).toBe(values.length)
  })

  test('is the same if and only if the payloads are equal', async () => {
    // No value is an object with several keys: the JSON of equal objects can have them in another order.
    const value = fc.oneof(fc.array(fc.jsonValue({ maxDepth: 0 })), fc.string(), fc.integer())
    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        const payloads = [a, b].map((extra) => JSON.parse(JSON.stringify({ ...flat, extra })))
        let same = true
        try {
          expect(payloads[0]).toStrictEqual(payloads[1])
        } catch {
          same = false
        }
        expect((await keyOf(payloads[0])) === (await keyOf(payloads[1]))).toBe(same)
      }),
      { numRuns: 200 },
    )
  })
})

describe('with a field of another JSON type, the event key', () => {
  const values = ['a', 'b', ['a'], ['b'], ['a', 'b'], 'a,b', ['a,b'], 1, 2, '1', true, {}, { a: 1 }, [[]], [{}]]

  test.each(['user_id', 'emitted_at', 'qualities', 'status'])('differs if %s differs', async (field) => {
    const keys = await Promise.all(values.map((value) => keyOf({ ...sample, [field]: value })))
    expect(new Set(keys).size).toBe(values.length)
  })

  test('distinguishes a media id from its text', async () => {
    expect(await keyOf({ ...sample, media_id: 42 })).not.toBe(await keyOf({ ...sample, media_id: '42' }))
  })

  test('distinguishes numbers that JSON.parse rounds to the same', async () => {
    const at = async (time: string) => (await eventOf(`{"type":"a","media_id":"m","emitted_at":${time}}`)).key
    expect(await at('1772366400.1234567891')).not.toBe(await at('1772366400.1234567892'))
    expect(await at('1772366400.1234567891')).toBe(await at('1772366400.1234567891'))
  })

  test('is the same for every retry', async () => {
    const payload = { ...sample, qualities: ['360p', '720p'] }
    expect(await keyOf({ ...payload })).toBe(await keyOf(payload))
  })
})
