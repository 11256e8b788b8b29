import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  basicAuth,
  headerToken,
  hmacSignature,
  publicKeySignature,
  standardWebhooks,
  timestampedSignature,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import { body, deliveryWith, verdict } from './verdict.ts'

const longest = 4_096
const secret = 'c2VjcmV0'
const seconds = String(Math.floor(Date.now() / 1_000))

/** Makes the header fields of a delivery with this id, whose signatures are as long as they may be. */
function standardFields(id: string) {
  const hmac = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${id}.${seconds}.`).update(body)
  const signature = `v1,${hmac.digest('base64')} v2,`
  return {
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': signature.padEnd(longest, 'x'),
  }
}

test.each<[string, Verifier, Record<string, string>, RegExp]>([
  ['urlToken', urlToken({ secret }), {}, /wrong/],
  ['headerToken', headerToken({ secret, header: 'x-token' }), { 'x-token': 'x'.repeat(longest) }, /wrong/],
  [
    'basicAuth',
    basicAuth({ username: 'media', password: secret }),
    // The rest is a multiple of 4, as base64 is.
    { authorization: `Basic   ${'A'.repeat(longest - 'Basic   '.length)}` },
    /wrong/,
  ],
  [
    'hmacSignature',
    hmacSignature({ secret, header: 'x-signature' }),
    { 'x-signature': 'a'.repeat(longest) },
    /no signature matches/,
  ],
  [
    'publicKeySignature',
    publicKeySignature({
      publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      header: 'x-s',
    }),
    { 'x-s': 'a'.repeat(longest) },
    /no public key matches/,
  ],
  [
    'timestampedSignature',
    timestampedSignature({ secret, header: 'x-signature' }),
    { 'x-signature': `t=${seconds},v1=`.padEnd(longest, 'a') },
    /no signature matches/,
  ],
  ['standardWebhooks', standardWebhooks({ secret }), standardFields('m'.repeat(longest)), /^verified$/],
])('%s compares credentials of 4,096 characters', async (_, verifier, fields, reason) => {
  expect(await verdict(verifier, deliveryWith(fields, `/?token=${'x'.repeat(longest)}`))).toMatch(reason)
})
