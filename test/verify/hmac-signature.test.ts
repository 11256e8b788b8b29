import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type HmacSignatureOptions, hmacSignature } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithHmac } from '../../src/testing/index.ts'
import { body, deliveryWith, exactHeaders, messageOfBuild, verdict } from './verdict.ts'

const secret = 'a shared secret'
const header = 'X-Signature'
const plain = { secret, header }
const timestamp = { header: 'x-timestamp' }
const listed = { ...plain, separator: ',' }

const hex = createHmac('sha256', secret).update(body).digest('hex')
const base64 = createHmac('sha256', secret).update(body).digest('base64')
const signed = (value: string) => deliveryWith({ [header]: value })

const schemes: [what: string, options: HmacSignatureOptions][] = [
  ['SHA-256 in hex', plain],
  ['SHA-1', { ...plain, algorithm: 'sha1' }],
  ['SHA-512', { ...plain, algorithm: 'sha512' }],
  ['base64', { ...plain, encoding: 'base64' }],
  ['a prefix', { ...plain, prefix: 'sha256=' }],
  ['a separator', { ...plain, separator: ' ' }],
  ['a signed timestamp', { ...plain, timestamp }],
  ['an unsigned timestamp', { ...plain, timestamp, signedContent: 'body' }],
  ['every option', { ...plain, algorithm: 'sha512', encoding: 'base64', prefix: 'v1=', separator: ';', timestamp }],
  ['a secret beyond ASCII', { ...plain, secret: 'sécrèt 密 😀' }],
  ['a secret longer than a block', { ...plain, secret: 's'.repeat(200) }],
]

describe.each(schemes)('hmacSignature with %s', (_, options) => {
  const verifier = hmacSignature(options)
  const sign = (by = options) => makeDelivery(samplePayload('encoding.finished'), { sign: signWithHmac(by) })

  test('verifies what its signer makes', async () => {
    expect(await verdict(verifier, await sign())).toBe('verified')
  })

  test('does not verify a body in which one bit changed', async () => {
    const delivery = await sign()
    const altered = Uint8Array.from(delivery.body as Uint8Array)
    altered[20] = (altered[20] as number) ^ 1
    expect(await verdict(verifier, { ...delivery, body: altered })).toMatch(/no signature matches/)
  })

  test('does not verify a signature made with another secret', async () => {
    expect(await verdict(verifier, await sign({ ...options, secret: 'another' }))).toMatch(/no signature matches/)
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const rotating = hmacSignature({ ...options, secret: ['new', 'old'] })
    for (const secret of ['new', 'old']) {
      expect(await verdict(rotating, await sign({ ...options, secret }))).toBe('verified')
    }
    expect(await verdict(rotating, await sign())).toMatch(/no signature matches/)
  })
})

describe('hmacSignature', () => {
  test.each(['sha1', 'sha256', 'sha512'] as const)('agrees with createHmac on %s', async (algorithm) => {
    for (const encoding of ['hex', 'base64'] as const) {
      const signature = createHmac(algorithm, secret).update(body).digest(encoding)
      expect(await verdict(hmacSignature({ ...plain, algorithm, encoding }), signed(signature))).toBe('verified')
    }
  })

  test('verifies a signature of the timestamp, a full stop and the body', async () => {
    const now = () => 1_700_000_000_000
    const signature = createHmac('sha256', secret).update('1700000000.').update(body).digest('hex')
    const delivery = deliveryWith({ [header]: signature, 'x-timestamp': '1700000000' })
    expect(await verdict(hmacSignature({ ...plain, timestamp, now }), delivery)).toBe('verified')
    const bodyOnly = hmacSignature({ ...plain, timestamp, now, signedContent: 'body' })
    expect(await verdict(bodyOnly, delivery)).toMatch(/no signature matches/)
  })

  test('does not verify a delivery whose timestamp was replaced', async () => {
    const now = () => 1_700_000_000_000
    const signature = createHmac('sha256', secret).update('1600000000.').update(body).digest('hex')
    const delivery = deliveryWith({ [header]: signature, 'x-timestamp': '1700000000' })
    expect(await verdict(hmacSignature({ ...plain, timestamp, now }), delivery)).toMatch(/no signature matches/)
  })

  test('accepts hex in either case, and base64 only with its exact case', async () => {
    expect(await verdict(hmacSignature(plain), signed(hex.toUpperCase()))).toBe('verified')
    const verifier = hmacSignature({ ...plain, encoding: 'base64' })
    expect(await verdict(verifier, signed(base64))).toBe('verified')
    expect(await verdict(verifier, signed(base64.toLowerCase()))).toMatch(/no signature matches/)
  })

  test.each(['x-signature', 'X-SIGNATURE'])('finds the header when it is written %s', async (name) => {
    expect(await verdict(hmacSignature(plain), deliveryWith({ [name]: hex }))).toBe('verified')
  })

  test.each([
    ['an empty signature', ''],
    ['text that is not hex', `${hex.slice(0, -1)}g`],
    ['a signature in base64', base64],
    ['an unexpected prefix', `sha256=${hex}`],
    ['several signatures without a separator', `${hex},${hex}`],
    ['white space around it', ` ${hex}`],
    ['a fullwidth digit', `${hex.slice(0, -1)}１`],
    ['an oversized signature', 'a'.repeat(4_097)],
  ])('reports %s as malformed', async (_, value) => {
    const delivery = { ...deliveryWith(), headers: exactHeaders({ 'x-signature': value }) }
    expect(await verdict(hmacSignature(plain), delivery)).toMatch(/malformed/)
  })

  test.each([
    ['half the signature', hex.slice(0, 32)],
    ['one digit less', hex.slice(1)],
    ['one digit more', `${hex}0`],
    ['zeros', '0'.repeat(64)],
  ])('does not verify %s', async (_, value) => {
    expect(await verdict(hmacSignature(plain), signed(value))).toMatch(/no signature matches/)
  })

  test('does not verify a delivery without its headers', async () => {
    expect(await verdict(hmacSignature(plain), deliveryWith())).toMatch(/X-Signature is missing/)
    expect(await verdict(hmacSignature({ ...plain, timestamp }), signed(hex))).toMatch(/x-timestamp is missing/)
  })

  test('does not verify a header that was sent twice', async () => {
    const field: [string, string] = [header, hex]
    for (const options of [plain, listed]) {
      expect(await verdict(hmacSignature(options), deliveryWith([field, field]))).toMatch(/malformed/)
    }
  })

  test('does not verify a signature without its prefix', async () => {
    expect(await verdict(hmacSignature({ ...plain, prefix: 'sha256=' }), signed(hex))).toMatch(/malformed/)
  })
})

describe('several signatures in one header', () => {
  const wrong = '0'.repeat(64)
  const list = (count: number) => [...Array<string>(count - 1).fill(wrong), hex].join(',')

  test('are verified when one of them matches, at any position', async () => {
    for (const value of [hex, `${hex},${wrong}`, `${wrong},${hex}`, `${wrong},${hex.toUpperCase()},${wrong}`]) {
      expect(await verdict(hmacSignature(listed), signed(value))).toBe('verified')
    }
    expect(await verdict(hmacSignature(listed), signed(`${wrong},${wrong}`))).toMatch(/no signature matches/)
  })

  test('each carry the prefix', async () => {
    const verifier = hmacSignature({ ...listed, prefix: 'v1=' })
    expect(await verdict(verifier, signed(`v1=${wrong},v1=${hex}`))).toBe('verified')
    expect(await verdict(verifier, signed(`v1=${wrong},${hex}`))).toMatch(/malformed/)
  })

  test('are at most 16', async () => {
    expect(await verdict(hmacSignature(listed), signed(list(16)))).toBe('verified')
    expect(await verdict(hmacSignature(listed), signed(list(17)))).toMatch(/malformed/)
  })

  test('are not verified when one of them is malformed', async () => {
    for (const value of [`${hex},`, `,${hex}`, `${hex},xyz`, `${hex}, ${hex}`]) {
      expect(await verdict(hmacSignature(listed), signed(value))).toMatch(/malformed/)
    }
  })
})

describe('hmacSignature cannot be built with', () => {
  test.each<[string, Partial<Record<keyof HmacSignatureOptions, unknown>>, RegExp]>([
    ['an unknown algorithm', { algorithm: 'md5' }, /algorithm must be one of sha256, sha1, sha512/],
    ['an unknown encoding', { encoding: 'base64url' }, /encoding must be one of hex, base64/],
    ['an unknown signedContent', { timestamp, signedContent: 'url' }, /signedContent must be one of/],
    ['a signed timestamp without a header for it', { signedContent: 'timestamp.body' }, /needs a timestamp header/],
    ['an empty separator', { separator: '' }, /separator/],
    ['no header', { header: undefined }, /: header must be the name of a header/],
    ['an empty header', { header: '' }, /name of a header/],
    ['a header with a space', { header: 'x signature' }, /name of a header/],
    ['a timestamp without a header', { timestamp: {} }, /: timestamp: header must be the name of a header/],
    ...[Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY, '300'].map((toleranceSeconds): [string, object, RegExp] => [
      `a tolerance of ${toleranceSeconds}`,
      { timestamp: { header: 'x-timestamp', toleranceSeconds } },
      /toleranceSeconds must be a whole number/,
    ]),
  ])('%s', (_, options, message) => {
    const text = messageOfBuild(() => hmacSignature({ ...plain, ...options } as HmacSignatureOptions))
    expect(text).toMatch(message)
    expect(text).not.toContain(secret)
  })
})

test('hmacSignature needs the exact bytes', () => expect(hmacSignature(plain).needsBytes).toBe(true))
