import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type PublicKeySignatureOptions, publicKeySignature } from '../../src/index.ts'
import { body, deliveryWith, messageOfBuild, verdict } from './verdict.ts'

type Options = Omit<PublicKeySignatureOptions, 'publicKey'>

interface Pair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

const now = 1_700_000_000_000
const time = '1700000000'

const schemes: Record<string, { options: Options; pair: () => Pair }> = {
  Discord: {
    options: {
      header: 'x-signature-ed25519',
      timestamp: { header: 'x-signature-timestamp' },
      signed: '{timestamp}{body}',
      now: () => now,
    },
    pair: () => generateKeyPairSync('ed25519'),
  },
  SendGrid: {
    options: {
      algorithm: 'ecdsa-sha256',
      encoding: 'base64',
      header: 'X-Twilio-Email-Event-Webhook-Signature',
      timestamp: { header: 'X-Twilio-Email-Event-Webhook-Timestamp' },
      signed: '{timestamp}{body}',
      now: () => now,
    },
    pair: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  },
  RSA: {
    options: {
      algorithm: 'rsa-sha256',
      encoding: 'base64',
      prefix: 'v1=',
      header: 'x-signature',
      timestamp: { header: 'x-timestamp' },
      now: () => now,
    },
    pair: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  },
}

const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }) as string
const base64 = (key: KeyObject) => key.export({ type: 'spki', format: 'der' }).toString('base64')
const raw = (key: KeyObject) => key.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')

/** Signs as the sender does. */
function signatureOf(options: Options, key: KeyObject): Buffer {
  const prefix = options.signed === '{timestamp}{body}' ? time : `${time}.`
  const hash = options.algorithm === undefined ? null : 'sha256'
  return sign(hash, Buffer.concat([Buffer.from(prefix), body]), key)
}

const fieldsOf = ({ header, prefix = '', encoding = 'hex', timestamp }: Options, signature: Buffer) => ({
  [header]: `${prefix}${signature.toString(encoding)}`,
  [timestamp?.header ?? '']: time,
})

/** RFC 8032, 7.1. */
const rfc8032 = [
  {
    publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    content: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    content: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    publicKey: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    content: 'af82',
    signature:
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  },
]

/** Published in the tests of SendGrid's library for Node. */
const sendGrid = {
  publicKey:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEDr2LjtURuePQzplybdC+u4CwrqDqBaWjcMMsTbhdbcwHBcepxo7yAQGhHPTnlvFYPAZFceEu/1FwCM/QmGUhA==',
  signature: 'MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2j/0=',
  timestamp: '1588788367',
  body: '{"category":"example_payload","event":"test_event","message_id":"message_id"}',
}

/** Declares the tests of `publicKeySignature` with an implementation of `#crypto`. */
export function testPublicKeys(crypto: string): void {
  describe.each(Object.entries(schemes))(`publicKeySignature, ${crypto}: %s`, (name, { options, pair }) => {
    const { publicKey, privateKey } = pair()
    const other = pair()
    const signature = signatureOf(options, privateKey)
    const make = (key: PublicKeySignatureOptions['publicKey']) => publicKeySignature({ publicKey: key, ...options })
    const signed = (signature: Buffer, change: Record<string, string> = {}) =>
      deliveryWith({ ...fieldsOf(options, signature), ...change })

    const forms: [string, (key: KeyObject) => string][] = [
      ['PEM', pem],
      ['PEM without a newline at its end', (key) => pem(key).trim()],
      ['PEM with the line ends of Windows', (key) => pem(key).replaceAll('\n', '\r\n')],
      ['base64', base64],
    ]
    if (name === 'Discord') forms.push(['hex', raw], ['hex in upper case', (key) => raw(key).toUpperCase()])

    test.each(forms)('verifies with a key in %s', async (_, form) => {
      expect(await verdict(make(form(publicKey)), signed(signature))).toBe('verified')
      expect(await verdict(make(form(other.publicKey)), signed(signature))).toMatch(/^no public key matches/)
    })

    test('verifies the old and the new key during a rotation', async () => {
      for (const keys of [[publicKey, other.publicKey].map(pem), [other.publicKey, publicKey].map(base64)]) {
        expect(await verdict(make(keys), signed(signature))).toBe('verified')
        expect(await verdict(make(keys), signed(signatureOf(options, other.privateKey)))).toBe('verified')
        const third = signatureOf(options, pair().privateKey)
        expect(await verdict(make(keys), signed(third))).toMatch(/^no public key matches/)
      }
    })

    test('names the owner of the key', async () => {
      const verifier = make(async () => ({ acme: pem(other.publicKey), zoo: pem(publicKey) }))
      const { url, headers } = signed(signature)
      expect(await verifier.verify({ url, headers, body })).toEqual({ verified: true, principal: 'zoo' })
    })

    test('rejects a delivery for which a function returns no key', async () => {
      for (const wrong of [undefined, 'no key', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string]) {
        const reason = await verdict(
          make(() => wrong),
          signed(signature),
        )
        expect(reason).toMatch(/no secret|must be one for/)
        if (wrong !== undefined) expect(reason).not.toContain(wrong)
      }
    })

    test('does not verify another body, another time or no time', async () => {
      const verifier = make(pem(publicKey))
      const changed = { ...signed(signature), body: new Uint8Array([...body, 32]) }
      expect(await verdict(verifier, changed)).toMatch(/^no public key matches/)
      const header = options.timestamp?.header ?? ''
      expect(await verdict(verifier, signed(signature, { [header]: '1700000001' }))).toMatch(/^no public key matches/)
      expect(await verdict(verifier, signed(signature, { [header]: '1699999699' }))).toMatch(/too old/)
      expect(await verdict(verifier, signed(signature, { [header]: '1700000301' }))).toMatch(/in the future/)
      expect(await verdict(verifier, signed(signature, { [header]: 'now' }))).toMatch(/malformed/)
    })

    test('does not verify when any bit of the signature is another', async () => {
      const verifier = make(pem(publicKey))
      for (let at = 0; at < signature.length; at++) {
        const changed = Buffer.from(signature)
        changed[at] = (changed[at] as number) ^ (1 << (at % 8))
        const { url, headers } = signed(changed)
        expect((await verifier.verify({ url, headers, body })).verified, `byte ${at}`).toBe(false)
      }
    })

    test('never throws for a signature, and verifies none of any bytes', async () => {
      const verifier = make(pem(publicKey))
      const length = signature.length
      const bytes = fc.oneof(
        fc.uint8Array({ minLength: 1, maxLength: 300 }),
        fc.uint8Array({ minLength: length, maxLength: length }),
        fc.nat(length - 1).map((end) => signature.subarray(0, end)),
        fc.uint8Array({ minLength: 1, maxLength: 80 }).map((rest) => Buffer.concat([signature, rest])),
        fc.uint8Array({ maxLength: 80 }).map((rest) => Buffer.concat([Buffer.of(0x30, rest.length), rest])),
      )
      await fc.assert(
        fc.asyncProperty(bytes, async (bytes) => {
          const { url, headers } = signed(Buffer.from(bytes))
          expect((await verifier.verify({ url, headers, body })).verified).toBe(false)
        }),
        { numRuns: 300 },
      )
    })

    test.each([
      ['an empty header', ''],
      ['text of neither encoding', '###'],
      ['an odd length', `${options.prefix ?? ''}abc`],
      ['a header sent twice', [1, 2].map(() => fieldsOf(options, signature)[options.header]).join(', ')],
      ['an oversized header', `${options.prefix ?? ''}${'a'.repeat(4_100)}`],
    ])('rejects %s', async (_, value) => {
      const delivery = signed(signature, { [options.header]: value })
      expect(await verdict(make(pem(publicKey)), delivery)).toMatch(/malformed/)
    })

    test('rejects a delivery without the header', async () => {
      expect(await verdict(make(pem(publicKey)), deliveryWith())).toMatch(/is missing$/)
    })

    test('cannot be built with the key of another algorithm', () => {
      for (const [otherName, { pair }] of Object.entries(schemes))
        if (otherName !== name) expect(messageOfBuild(() => make(pem(pair().publicKey)))).toMatch(/must be one for/)
    })
  })

  describe(`publicKeySignature, ${crypto}`, () => {
    test.each(rfc8032)('verifies the vector of RFC 8032 of $publicKey', async ({ publicKey, content, signature }) => {
      const verifier = publicKeySignature({ publicKey, header: 'x-s' })
      const headers = new Headers({ 'x-s': signature })
      const ask = (body: Uint8Array) => verifier.verify({ url: '/', headers, body })
      expect(await ask(Buffer.from(content, 'hex'))).toEqual({ verified: true })
      expect(await ask(Buffer.from(`${content}00`, 'hex'))).toMatchObject({ verified: false })
    })

    test('verifies the vector of SendGrid, and no other time or body', async () => {
      const { publicKey, signature, timestamp, body } = sendGrid
      const verifier = publicKeySignature({
        publicKey,
        algorithm: 'ecdsa-sha256',
        encoding: 'base64',
        header: 'x-s',
        timestamp: { header: 'x-t' },
        signed: '{timestamp}{body}',
        now: () => 1_588_788_367_000,
      })
      const ask = async (time: string, text: string) => {
        const headers = new Headers({ 'x-s': signature, 'x-t': time })
        return (await verifier.verify({ url: '/', headers, body: new TextEncoder().encode(text) })).verified
      }
      expect(await ask(timestamp, body)).toBe(true)
      expect(await ask('1588788368', body)).toBe(false)
      expect(await ask(timestamp, `${body}\r\n`)).toBe(false)
    })

    test('verifies an ECDSA signature in DER only, and with numbers of fewer bytes', async () => {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const options = { algorithm: 'ecdsa-sha256', encoding: 'base64', header: 'x-s' } as const
      const verifier = publicKeySignature({ ...options, publicKey: pem(publicKey) })
      const lengths = new Set<number>()
      while (!lengths.has(69)) {
        const signature = sign('sha256', body, privateKey)
        lengths.add(signature.length)
        const headers = new Headers({ 'x-s': signature.toString('base64') })
        expect((await verifier.verify({ url: '/', headers, body })).verified).toBe(true)
      }
      const plain = sign('sha256', body, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64')
      expect(await verdict(verifier, deliveryWith({ 'x-s': plain }))).toMatch(/^no public key matches/)
    })

    test.each<[string, Options['algorithm'] & {}, string]>([
      ['empty', 'ed25519', ''],
      ['no key', 'ed25519', 'a key'],
      ['31 bytes', 'ed25519', 'd7'.repeat(31)],
      ['33 bytes', 'ed25519', 'd7'.repeat(33)],
      ['a newline behind hex', 'ed25519', `${'d7'.repeat(32)}\n`],
      ['hex for ECDSA', 'ecdsa-sha256', 'd7'.repeat(32)],
      [
        'a private key',
        'ed25519',
        generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      ],
      ['a certificate', 'rsa-sha256', `-----BEGIN CERTIFICATE-----\n${'A'.repeat(64)}\n-----END CERTIFICATE-----\n`],
      ['another curve', 'ecdsa-sha256', pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
      ['Ed448', 'ed25519', pem(generateKeyPairSync('ed448').publicKey)],
      ['a key that is cut off', 'ecdsa-sha256', sendGrid.publicKey.slice(0, -8)],
    ])('cannot be built with a key that is %s, and does not quote it', (_, algorithm, publicKey) => {
      const message = messageOfBuild(() => publicKeySignature({ publicKey, algorithm, header: 'x-s' }))
      expect(message).toMatch(/^publicKeySignature: /)
      if (publicKey !== '') expect(message).not.toContain(publicKey.trim().split('\n').at(-2) ?? publicKey.trim())
    })

    test('never verifies with a key that has the right form and is no point of the curve', async () => {
      const publicKey = `${sendGrid.publicKey.slice(0, -8)}AAAAAAA=`
      const ask = async () => {
        const verifier = publicKeySignature({ publicKey, algorithm: 'ecdsa-sha256', encoding: 'base64', header: 'x-s' })
        return verdict(verifier, deliveryWith({ 'x-s': sendGrid.signature }))
      }
      await expect(ask()).rejects.toThrow()
    })

    test('needs the exact bytes', () => {
      expect(publicKeySignature({ publicKey: 'd7'.repeat(32), header: 'x-s' })).toMatchObject({
        name: 'publicKeySignature',
        needsBytes: true,
      })
    })
  })
}
