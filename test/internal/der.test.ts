import { createPublicKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isSpki, readCertificate, readEcdsaSignature } from '../../src/internal/crypto/der.ts'
import { amazonCertificate, ownCertificate } from '../verify/sns-vectors.ts'

const bytesOf = (buffer: Buffer) => new Uint8Array(buffer)
const toPem = (der: Buffer) => `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`

describe('readCertificate', () => {
  test.each([
    ['of Amazon, in version 3', amazonCertificate],
    ['of openssl, in version 1, that ends after 2049', ownCertificate],
  ])('reads what Node reads of a certificate %s', (_, pem) => {
    const { publicKey, validFrom, validTo } = new X509Certificate(pem)
    expect(readCertificate(pem)).toEqual({
      spki: bytesOf(publicKey.export({ type: 'spki', format: 'der' })),
      notBefore: Date.parse(validFrom),
      notAfter: Date.parse(validTo),
    })
  })

  test.each([
    ['000101000000Z', '2000-01-01T00:00:00Z'],
    ['491231235959Z', '2049-12-31T23:59:59Z'],
    ['500101000000Z', '1950-01-01T00:00:00Z'],
    ['991231235959Z', '1999-12-31T23:59:59Z'],
    ['20010100000+Z', 'none'],
    ['200101000000+', 'none'],
    ['209901000000Z', 'none'],
  ])('reads the time %s as %s', (text, time) => {
    const { raw } = new X509Certificate(ownCertificate)
    raw.write(text, raw.indexOf('200101000000Z'))
    expect(readCertificate(toPem(raw)).notBefore).toBe(Date.parse(time))
  })

  test('throws an error, or reads bytes of the certificate, when any of it is changed or cut off', () => {
    const { raw } = new X509Certificate(amazonCertificate)
    const change = fc.tuple(fc.nat(raw.length - 1), fc.nat(255), fc.nat(raw.length))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 3 }), (changes) => {
        let der = Buffer.from(raw)
        for (const [at, byte, end] of changes) {
          der[at] = byte
          if (byte === 0) der = der.subarray(0, end)
        }
        try {
          const { spki, notBefore, notAfter } = readCertificate(toPem(der))
          expect(der.includes(Buffer.from(spki))).toBe(true)
          expect([notBefore, notAfter]).toEqual([expect.any(Number), expect.any(Number)])
        } catch (error) {
          expect((error as Error).message).toMatch(/^(malformed DER|not a certificate)$/)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

test('isSpki tells the algorithms of public keys apart', () => {
  const spki = {
    ed25519: generateKeyPairSync('ed25519').publicKey,
    'ecdsa-sha256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
    'rsa-sha256': createPublicKey(amazonCertificate),
  }
  const others = [
    generateKeyPairSync('x25519').publicKey,
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey,
    generateKeyPairSync('rsa-pss', { modulusLength: 1_024 }).publicKey,
  ]
  for (const algorithm of Object.keys(spki) as (keyof typeof spki)[]) {
    const named = Object.entries(spki).map(([name, key]) => [name, key] as const)
    for (const [name, key] of [...named, ...others.map((key) => ['other', key] as const)])
      expect(isSpki(algorithm, bytesOf(key.export({ type: 'spki', format: 'der' })))).toBe(name === algorithm)
  }
  expect(
    isSpki(
      'rsa-sha256',
      bytesOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({ type: 'spki', format: 'der' })),
    ),
  ).toBe(true)
})

describe('readEcdsaSignature', () => {
  /** DER of two numbers, with as many bytes as they need. */
  const encode = (numbers: readonly bigint[]) => {
    const parts = numbers.map((number) => {
      const hex = number.toString(16)
      const even = hex.length % 2 === 0 ? hex : `0${hex}`
      const bytes = Buffer.from(even >= '8' ? `00${even}` : even, 'hex')
      return Buffer.concat([Buffer.of(2, bytes.length), bytes])
    })
    const content = Buffer.concat(parts)
    return bytesOf(Buffer.concat([Buffer.of(0x30, content.length), content]))
  }

  test('returns both numbers in 32 bytes each', () => {
    const number = fc.oneof(fc.bigInt(0n, 2n ** 256n - 1n), fc.bigInt(0n, 65_536n))
    fc.assert(
      fc.property(number, number, (r, s) => {
        const hex = [r, s].map((each) => each.toString(16).padStart(64, '0')).join('')
        expect(readEcdsaSignature(encode([r, s]))).toEqual(bytesOf(Buffer.from(hex, 'hex')))
      }),
    )
  })

  test('reads the signatures of Node', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    expect(readEcdsaSignature(bytesOf(sign('sha256', Buffer.from('text'), privateKey)))).toHaveLength(64)
  })

  test.each([
    ['nothing', []],
    ['one number', encode([1n])],
    ['three numbers', encode([1n, 2n, 3n])],
    ['a number of 33 bytes', encode([2n ** 256n, 1n])],
    ['something behind it', [...encode([1n, 2n]), 5, 0]],
    ['another tag', [0x31, ...encode([1n, 2n]).subarray(1)]],
    ['a length beyond its end', [0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2, 1, 1]],
  ])('refuses %s', (_, bytes) => expect(readEcdsaSignature(Uint8Array.from(bytes))).toBeUndefined())
})
