import { afterEach, describe, expect, test } from 'vitest'
import { createReceiver, unverified } from '../../src/index.ts'
import { samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { eventOf, flat, mediaId, rejectionOf } from './received.ts'

const pristine = JSON.stringify(Object.getOwnPropertyNames(Object.prototype).sort())

afterEach(() => {
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype).sort())).toBe(pristine)
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

/** Makes a payload that is `depth` levels deep. */
const nested = (depth: number, [open, close]: readonly [string, string]) =>
  `{"type":"encoding.finished","media_id":"${mediaId}","extra":${open.repeat(depth - 1)}${close.repeat(depth - 1)}}`

const list = ['[', ']'] as const

describe('a body that is not a payload', () => {
  const malformed = (text: string) => `400 malformed: the body ${text}`

  test.each([
    ['nothing', ''],
    ['white space', ' \n\t'],
    ['half an object', '{"type":"encoding.finished","media_id":"1"'],
    ['two objects', `${JSON.stringify(flat)}${JSON.stringify(flat)}`],
    ['a form', 'type=encoding.finished&media_id=1'],
    ['a comment', `// \n${JSON.stringify(flat)}`],
    ['a trailing comma', '{"type":"encoding.finished","media_id":"1",}'],
    ['single quotes', "{'type':'encoding.finished'}"],
    ['NaN', '{"type":"encoding.finished","media_id":NaN}'],
    ['a raw newline in a string', '{"type":"encoding.finished","media_id":"1\n"}'],
    ['60,000 brackets', '['.repeat(60_000)],
    ['60,000 braces', '{"a":'.repeat(12_000)],
    ['a byte order mark in the middle', `{"type":"encoding.finished",\uFEFF"media_id":"1"}`],
  ])('is not JSON: %s', async (_, body) => {
    expect(await rejectionOf(body)).toBe(malformed('is not JSON'))
  })

  test.each([
    ['a list', JSON.stringify([flat])],
    ['an empty list', '[]'],
    ['a number', '7'],
    ['a string', '"encoding.finished"'],
    ['null', 'null'],
    ['true', 'true'],
  ])('is not an object: %s', async (_, body) => {
    expect(await rejectionOf(body)).toBe(malformed('is not a JSON object'))
  })

  test.each([
    ['a lone continuation byte', [0x80]],
    ['half a character', [0xc3]],
    ['an overlong encoding', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a code point beyond Unicode', [0xf4, 0x90, 0x80, 0x80]],
    ['Latin-1', [0xe9]],
  ])('is not UTF-8: %s', async (_, bytes) => {
    const [head, tail] = [`{"type":"encoding.finished","media_id":"`, '"}'].map((text) =>
      new TextEncoder().encode(text),
    )
    const body = Uint8Array.from([...(head as Uint8Array), ...bytes, ...(tail as Uint8Array)])
    expect(await rejectionOf(body)).toBe(malformed('is not UTF-8'))
  })

  test('is UTF-16 instead of UTF-8', async () => {
    expect(await rejectionOf(Uint8Array.from(Buffer.from(`\uFEFF${JSON.stringify(flat)}`, 'utf16le')))).toBe(
      malformed('is not UTF-8'),
    )
  })

  test.each([
    ['lists', list],
    ['objects', ['{"a":[', ']}'] as const],
  ])('is nested too deeply: thousands of %s', async (_, brackets) => {
    const deep = nested(5_000, brackets)
    expect(await rejectionOf(deep)).toBe(malformed('is nested more than 64 levels deep'))
  })

  test('is nested more than 64 levels deep', async () => {
    expect((await eventOf(nested(64, list))).mediaId).toBe(mediaId)
    expect(await rejectionOf(nested(65, list))).toBe(malformed('is nested more than 64 levels deep'))
  })

  test.each([
    ['empty objects in a list', (count: number) => ({ extra: Array.from({ length: count }, () => ({})) })],
    ['numbers in lists', (count: number) => ({ extra: [Array.from({ length: count - 1 }, () => 0)] })],
    ['keys', (count: number) => ({ extra: Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1])) })],
  ])('has too many values: %s', async (_, extraOf) => {
    const others = Object.keys({ ...flat, extra: [] }).length
    expect((await eventOf({ ...flat, ...extraOf(4_096 - others) })).mediaId).toBe(mediaId)
    expect(await rejectionOf({ ...flat, ...extraOf(4_097 - others) })).toBe(malformed('has more than 4096 values'))
  })

  test('may have any number of commas in a text', async () => {
    expect((await eventOf({ ...flat, title: '{},'.repeat(10_000) })).mediaId).toBe(mediaId)
  })

  test.each(['type', 'media_id'])('has an object with a length in place of its %s', async (field) => {
    const body = { ...flat, [field]: { length: { toString: 1, valueOf: 1 } } }
    expect(await rejectionOf(body)).toBe(`400 malformed: field ${field}: expected a non-empty string`)
  })

  test('is also rejected when another parser has parsed it', async () => {
    const statusOf = async (parsed: unknown) => {
      const receiver = createReceiver({
        verify: unverified(),
        logger: silent,
      })
      return (await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body: { parsed } })).status
    }
    expect(await statusOf(flat)).toBe(200)
    for (const parsed of [null, [], [flat], 'text', 7, JSON.parse(nested(65, list))]) {
      expect(await statusOf(parsed)).toBe(400)
    }
  })
})

describe('an unusual payload', () => {
  test('keeps a key __proto__ as its own and changes no prototype', async () => {
    const members = `"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}`
    for (const body of [
      `{${members},"type":"encoding.finished","media_id":"${mediaId}"}`,
      `{"event":"encoding_finished","data":{${members},"videoId":"${mediaId}"}}`,
    ]) {
      const event = await eventOf(body)
      expect(event.mediaId).toBe(mediaId)
      expect(JSON.stringify(event.payload)).toBe(body)
      expect(Object.getPrototypeOf(event.payload)).toBe(Object.prototype)
      expect(event).not.toHaveProperty('polluted')
    }
  })

  test('does not inherit its fields', async () => {
    const inherited = `{"__proto__":${JSON.stringify(flat)}}`
    expect(await rejectionOf(inherited)).toBe('400 malformed: field type: expected a non-empty string')
    expect(await rejectionOf(`{"event":"encoding.finished","data":{"__proto__":{"videoId":"1"}}}`)).toMatch(
      /data.videoId/,
    )
  })

  test('also counts the depth inside a __proto__ key', async () => {
    const deep = `{"type":"a","media_id":"b","__proto__":${'['.repeat(100)}${']'.repeat(100)}}`
    expect(await rejectionOf(deep)).toMatch(/nested more than 64/)
  })

  test.each(['toString', 'hasOwnProperty', 'then', 'toJSON', 'valueOf', ''])('may have a key %j', async (key) => {
    const event = await eventOf({ ...flat, [key]: 'x' })
    expect(event.payload[key]).toBe('x')
  })

  test('may begin with a byte order mark', async () => {
    expect(await eventOf(`\uFEFF${JSON.stringify(flat)}`)).toMatchObject({ mediaId, payload: flat })
    expect(await rejectionOf(`\uFEFF\uFEFF${JSON.stringify(flat)}`)).toMatch(/not JSON/)
  })

  test('keeps the last of two equal keys', async () => {
    const event = await eventOf(`{"type":"file.received","media_id":"1","type":"encoding.finished","media_id":"2"}`)
    expect(event).toMatchObject({ type: 'encoding.finished', mediaId: '2' })
    expect(await rejectionOf(`{"type":"encoding.finished","media_id":"1","media_id":[2]}`)).toMatch(/media_id/)
  })

  test('may contain lone surrogates and control characters', async () => {
    const event = await eventOf(
      `{"type":"encoding.finished","media_id":"\\ud800","title":"\\u0000\\udc00","user_id":"\\ud83d\\ude00"}`,
    )
    expect(event).toMatchObject({ mediaId: '\ud800', title: '\u0000\udc00', userId: '😀' })
  })

  test('may contain numbers that overflow', async () => {
    expect((await eventOf(`{"type":"a","media_id":"b","extra":1e999}`)).type).toBe('a')
  })

  test('may have a title of 64 KiB if the limit allows it, and is too large otherwise', async () => {
    const payload = samplePayload('encoding.finished', { title: 't'.repeat(65_536) })
    expect(await rejectionOf(payload)).toBe('413 too_large: the body is larger than 65536 bytes')
    expect((await eventOf(payload, { maxBodyBytes: 70_000 })).title).toHaveLength(65_536)
  })

  test('may be as large as the limit, counted in bytes', async () => {
    const around = JSON.stringify({ ...flat, title: '' }).length
    const ofBytes = (bytes: number) => ({ ...flat, title: `é${'t'.repeat(bytes - around - 2)}` })
    expect((await eventOf(ofBytes(65_536))).mediaId).toBe(mediaId)
    expect(await rejectionOf(ofBytes(65_537))).toMatch(/^413/)
  })

  test('may have thousands of keys', async () => {
    const extra = Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`k${index}`, index]))
    expect((await eventOf({ ...flat, ...extra })).payload).toHaveProperty('k3999', 3_999)
  })
})
