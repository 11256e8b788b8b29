import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as node from '../../src/verify/crypto-node.ts'
import * as web from '../../src/verify/crypto-web.ts'
import type { HashAlgorithm, SignatureEncoding } from '../../src/verify/hmac-options.ts'
import { hmacVectors } from './hmac-vectors.ts'

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
// Below, at and beyond the 64 and 128 bytes of a block.
const key = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 200 }),
  fc.constantFrom(63, 64, 65, 127, 128, 129).map((length) => new Uint8Array(length).fill(7)),
)
const prefix = fc.oneof(fc.constant(''), fc.string({ unit: 'binary' }))
const content = fc.uint8Array({ maxLength: 300 })

describe('HMAC', () => {
  test.each(hmacVectors)('of the published vector: $algorithm, $of', async ({ algorithm, key, data, hmac }) => {
    for (const encoding of ['hex', 'base64'] as const) {
      const expected = Buffer.from(hmac, 'hex').toString(encoding)
      expect(nodeHmac(algorithm, key, '', data, encoding)).toBe(expected)
      expect(await webHmac(algorithm, key, '', data, encoding)).toBe(expected)
    }
  })

  test('with node:crypto is what createHmac makes', () => {
    fc.assert(
      fc.property(algorithm, key, prefix, content, encoding, (algorithm, key, prefix, content, encoding) => {
        const expected = createHmac(algorithm, key).update(utf8.encode(prefix)).update(content).digest(encoding)
        expect(nodeHmac(algorithm, key, prefix, content, encoding)).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })

  test('with WebCrypto is the same', async () => {
    await fc.assert(
      fc.asyncProperty(algorithm, key, prefix, content, encoding, async (...input) => {
        expect(await webHmac(...input)).toBe(nodeHmac(...input))
      }),
      { numRuns: 300 },
    )
  })

  test('takes a view into a larger buffer as what it shows', async () => {
    const view = utf8.encode('..key and content..').subarray(2, 17)
    const expected = createHmac('sha256', 'key and content').update('key and content').digest('hex')
    expect(nodeHmac('sha256', view, '', view, 'hex')).toBe(expected)
    expect(await webHmac('sha256', view, '', view, 'hex')).toBe(expected)
  })

  test('can be made many times with one key', async () => {
    const keys = [node.hmacKey('sha256', utf8.encode('key')), web.hmacKey('sha256', utf8.encode('key'))] as const
    for (const text of ['first', 'second', '']) {
      const expected = createHmac('sha256', 'key').update(text).digest('hex')
      expect(node.hmac(keys[0], '', utf8.encode(text), 'hex')).toBe(expected)
      expect(await web.hmac(keys[1], '', utf8.encode(text), 'hex')).toBe(expected)
    }
  })
})

describe('SHA-256 of a text', () => {
  test('is that of its UTF-8 in both', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        const expected = createHash('sha256').update(utf8.encode(text)).digest('hex')
        expect(node.sha256(text)).toBe(expected)
        expect(await web.sha256(text)).toBe(expected)
      }),
    )
  })
})
