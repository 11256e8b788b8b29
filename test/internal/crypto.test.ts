import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HashAlgorithm, SignatureEncoding } from '../../src/internal/crypto/encoding.ts'
import * as node from '../../src/internal/crypto/node.ts'
import * as web from '../../src/internal/crypto/web.ts'
import { hmacVectors } from '../verify/hmac-vectors.ts'

const utf8 = new TextEncoder()

const nodeHmac = (
  algorithm: HashAlgorithm,
  key: Uint8Array,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
) => node.hmac(node.hmacKey(algorithm, key), prefix, content, encoding)

const webHmac = (
  algorithm: HashAlgorithm,
  key: Uint8Array,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
) => web.hmac(web.hmacKey(algorithm, new Uint8Array(key)), prefix, content, encoding)

const algorithm = fc.constantFrom<HashAlgorithm>('sha1', 'sha256', 'sha512')
const encoding = fc.constantFrom<SignatureEncoding>('hex', 'base64')
// Lengths around 64 and 128 bytes, the block sizes of the hashes.
const key = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 200 }),
  fc.constantFrom(63, 64, 65, 127, 128, 129).map((length) => new Uint8Array(length).fill(7)),
)
const prefix = fc.oneof(fc.constant(''), fc.string({ unit: 'binary' }))
// Lengths around the room that a key keeps for messages.
const content = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.integer({ min: 4_000, max: 4_200 }).map((length) => new Uint8Array(length).fill(length)),
)

describe('HMAC', () => {
  test.each(hmacVectors)('matches the published vector: $algorithm, $of', async ({ algorithm, key, data, hmac }) => {
    for (const encoding of ['hex', 'base64'] as const) {
      const expected = Buffer.from(hmac, 'hex').toString(encoding)
      expect(nodeHmac(algorithm, key, '', data, encoding)).toBe(expected)
      expect(await webHmac(algorithm, key, '', data, encoding)).toBe(expected)
    }
  })

  test('on Node equals createHmac of the prefix and the content', () => {
    fc.assert(
      fc.property(algorithm, key, prefix, content, encoding, (algorithm, key, prefix, content, encoding) => {
        const expected = createHmac(algorithm, key).update(utf8.encode(prefix)).update(content).digest(encoding)
        expect(nodeHmac(algorithm, key, prefix, content, encoding)).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })

  test('with WebCrypto equals the one on Node', async () => {
    await fc.assert(
      fc.asyncProperty(algorithm, key, prefix, content, encoding, async (...input) => {
        expect(await webHmac(...input)).toBe(nodeHmac(...input))
      }),
      { numRuns: 300 },
    )
  })

  test.each(['sha1', 'sha256', 'sha512'] as const)(
    'equals createHmac around the block size of %s',
    async (algorithm) => {
      for (const length of [63, 64, 65, 127, 128, 129]) {
        const key = new Uint8Array(length).fill(7)
        const expected = createHmac(algorithm, key).update('text').digest('hex')
        expect(nodeHmac(algorithm, key, 'te', utf8.encode('xt'), 'hex')).toBe(expected)
        expect(await webHmac(algorithm, key, 'te', utf8.encode('xt'), 'hex')).toBe(expected)
      }
    },
  )

  test('with one key signs one message after another, of any length', () => {
    fc.assert(
      fc.property(algorithm, key, fc.array(fc.tuple(prefix, content), { minLength: 2 }), (algorithm, key, messages) => {
        const prepared = node.hmacKey(algorithm, key)
        for (const [prefix, content] of messages) {
          const expected = createHmac(algorithm, key).update(utf8.encode(prefix)).update(content).digest('hex')
          expect(node.hmac(prepared, prefix, content, 'hex')).toBe(expected)
        }
      }),
    )
  })

  test('with WebCrypto has a key that cannot be read', async () => {
    expect((await web.hmacKey('sha256', utf8.encode('key'))()).extractable).toBe(false)
  })

  test('reads only the view if the bytes are a view into a larger buffer', async () => {
    const view = utf8.encode('..key and content..').subarray(2, 17)
    const expected = createHmac('sha256', 'key and content').update('key and content').digest('hex')
    expect(nodeHmac('sha256', view, '', view, 'hex')).toBe(expected)
    expect(await webHmac('sha256', view, '', view, 'hex')).toBe(expected)
  })

  test('can be computed many times with one key', async () => {
    const keys = [node.hmacKey('sha256', utf8.encode('key')), web.hmacKey('sha256', utf8.encode('key'))] as const
    for (const text of ['first', 'second', '']) {
      const expected = createHmac('sha256', 'key').update(text).digest('hex')
      expect(node.hmac(keys[0], '', utf8.encode(text), 'hex')).toBe(expected)
      expect(await web.hmac(keys[1], '', utf8.encode(text), 'hex')).toBe(expected)
    }
  })
})

describe('SHA-256', () => {
  test('of bytes is that of the bytes, on Node and with WebCrypto', async () => {
    const bytes = Uint8Array.of(0, 128, 255)
    const expected = createHash('sha256').update(bytes).digest('hex')
    expect(node.sha256(bytes)).toBe(expected)
    expect(await web.sha256(bytes)).toBe(expected)
  })

  test('of a string hashes its UTF-8 on Node and with WebCrypto', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        const expected = createHash('sha256').update(utf8.encode(text)).digest('hex')
        expect(node.sha256(text)).toBe(expected)
        expect(await web.sha256(text)).toBe(expected)
      }),
    )
  })
})

describe.each([
  ['on Node', node.equalText],
  ['elsewhere', web.equalText],
])('equalText %s', (_, equalText) => {
  const text = fc.string({ unit: 'binary', maxLength: 40 })

  test('is true if and only if two strings are equal', () => {
    fc.assert(fc.property(text, text, (a, b) => equalText(a, b) === (a === b)))
    fc.assert(fc.property(text, (a) => equalText(a, a)))
  })

  test('finds a change of any bit of any character', () => {
    const text = 'a signature of 64 characters, as long as those of SHA-256 in hex'
    const missed: string[] = []
    for (let at = 0; at < text.length; at++) {
      for (let bit = 0; bit < 16; bit++) {
        const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
        if (equalText(changed, text) || equalText(text, changed)) missed.push(`bit ${bit} of character ${at}`)
      }
    }
    expect(missed).toEqual([])
  })

  test.each([
    ['\uD800', '\uD801'],
    ['\uD800', '\uFFFD'],
    ['é', 'e\u0301'],
  ])('distinguishes %j from %j, which some encodings make equal', (a, b) => {
    expect(equalText(a, b)).toBe(false)
    expect(equalText(b, a)).toBe(false)
  })

  test.each([
    ['', 'a'],
    ['a', ''],
    ['abc', 'abcd'],
    ['abcd', 'abc'],
    ['a', 'a\u0000'],
    ['\u0000', ''],
    ['', '\u0000\u0000'],
    // Lengths whose difference does not fit into a code unit.
    ['a'.repeat(65_536), ''],
  ])('distinguishes %o from %o, which have different lengths', (a, b) => {
    expect(equalText(a, b)).toBe(false)
    expect(equalText(b, a)).toBe(false)
  })
})
