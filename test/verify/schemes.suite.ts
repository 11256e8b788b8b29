import { describe, expect, test } from 'vitest'
import {
  anyOf,
  basicAuth,
  headerToken,
  hmacSignature,
  type Secrets,
  standardWebhooks,
  timestampedSignature,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  makeDelivery,
  type Signer,
  samplePayload,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../../src/testing/index.ts'
import { verdict } from './verdict.ts'

interface Scheme {
  build(secret: Secrets): Verifier
  sign(secret: string): Signer
  /** The header that carries the credential; `undefined` if the URL does. */
  readonly header?: string
}

const username = 'media'
const token = { header: 'x-token', prefix: 'Bearer ' }
const hmac = { header: 'x-signature' }
const timed = { ...hmac, timestamp: { header: 'x-timestamp' } }
const base64 = { ...timed, algorithm: 'sha512', encoding: 'base64', prefix: 'v1=' } as const

const schemes: Record<string, Scheme> = {
  urlToken: { build: (secret) => urlToken({ secret }), sign: (secret) => signWithUrlToken({ secret }) },
  'urlToken in the path': {
    build: (secret) => urlToken({ secret, in: 'path' }),
    sign: (secret) => signWithUrlToken({ secret, in: 'path' }),
  },
  headerToken: {
    build: (secret) => headerToken({ secret, ...token }),
    sign: (secret) => signWithHeaderToken({ secret, ...token }),
    header: 'x-token',
  },
  basicAuth: {
    build: (password) => basicAuth({ username, password }),
    sign: (password) => signWithBasicAuth({ username, password }),
    header: 'authorization',
  },
  'hmacSignature in hex': {
    build: (secret) => hmacSignature({ secret, ...hmac }),
    sign: (secret) => signWithHmac({ secret, ...hmac }),
    header: 'x-signature',
  },
  'hmacSignature with a timestamp': {
    build: (secret) => hmacSignature({ secret, ...timed }),
    sign: (secret) => signWithHmac({ secret, ...timed }),
    header: 'x-signature',
  },
  'hmacSignature in base64': {
    build: (secret) => hmacSignature({ secret, ...base64 }),
    sign: (secret) => signWithHmac({ secret, ...base64 }),
    header: 'x-signature',
  },
  standardWebhooks: {
    build: (secret) => standardWebhooks({ secret }),
    sign: (secret) => signWithStandardWebhooks({ secret }),
    header: 'webhook-signature',
  },
  timestampedSignature: {
    build: (secret) => timestampedSignature({ secret, ...hmac }),
    sign: (secret) => signWithTimestampedSignature({ secret, ...hmac }),
    header: 'x-signature',
  },
  anyOf: {
    build: (secret) => anyOf(urlToken({ secret: 'x' }), standardWebhooks({ secret })),
    sign: (secret) => signWithStandardWebhooks({ secret }),
    header: 'webhook-signature',
  },
}

// Base64 without padding, also behind the user name: then each of its characters counts.
const secrets = ['Zmlyc3Qga2V5c2Vj', 'c2Vjb25kIGtleXM5', 'dGhpcmQga2V5IHRv'] as const
const wrong = 'Z3Vlc3NlZCBrZXk5'

/** Returns the texts in which one character is another one, from the given index on. */
const changesOf = (text: string, from = 0) =>
  [...text.slice(from)].map((character, i) => {
    const at = from + i
    return text.slice(0, at) + (character === '0' ? '1' : '0') + text.slice(at + 1)
  })

/** Declares the tests that every verifier passes with any implementation of `#crypto`. */
export function testSchemes(crypto: string): void {
  describe.each(Object.entries(schemes))(`${crypto}, %s`, (_, { build, sign, header }) => {
    const signed = (secret: string) => makeDelivery(samplePayload('encoding.finished'), { sign: sign(secret) })

    test.each([1, 2, 3])('verifies each of %d secrets, and no other', async (count) => {
      const verifier = build(secrets.slice(0, count))
      for (const [index, secret] of secrets.entries()) {
        const expected = index < count ? /^verified$/ : /wrong|no signature matches/
        expect(await verdict(verifier, await signed(secret))).toMatch(expected)
      }
      expect(await verdict(verifier, await signed(wrong))).toMatch(/wrong|no signature matches/)
    })

    test('does not verify a delivery when any one character of its credential is another', async () => {
      const verifier = build(secrets)
      const { url, headers, body } = await signed(secrets[0])
      const ask = async (changed: { url?: string; credential?: string }) => {
        const fields = {
          ...Object.fromEntries(headers as Headers),
          ...(header && { [header]: changed.credential ?? '' }),
        }
        const delivery = { url: changed.url ?? url, headers: new Headers(fields), body: body as Uint8Array }
        return (await verifier.verify(delivery)).verified
      }
      const value = header === undefined ? url : (headers.get(header) as string)
      const toChange = (text: string) => (header === undefined ? { url: text } : { credential: text })
      expect(await ask(toChange(value))).toBe(true)
      const changes = changesOf(value, header === undefined ? url.indexOf(secrets[0]) : 0)
      expect(changes.length).toBeGreaterThanOrEqual(secrets[0].length)
      for (const text of changes) expect(await ask(toChange(text)), text).toBe(false)
    })
  })
}
