import { describe, expect, test } from 'vitest'
import { urlToken } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { deliveryWith, messageOfBuild, verdict } from './verdict.ts'

const at = (url: string) => deliveryWith({}, url)
const payload = samplePayload('encoding.finished')
/** Characters that have a meaning in a URL, or that a URL has to encode. */
const awkward = 'a+b/c d&e=f?g#h%20ü😀'

describe('urlToken in the query', () => {
  const verifier = urlToken({ secret: 's3cret' })

  test.each(['s3cret', awkward])('verifies what its signer makes of %s', async (secret) => {
    for (const url of ['/hook', '/hook?a=1', 'https://example.com/hook', 'https://example.com/hook?a=1&b=2']) {
      for (const parameter of [undefined, 'key']) {
        const options = { secret, ...(parameter && { parameter }) }
        const delivery = await makeDelivery(payload, { url, sign: signWithUrlToken(options) })
        expect(await verdict(urlToken(options), delivery)).toBe('verified')
      }
    }
  })

  test.each([
    ['after other parameters', '/hook?a=1&token=s3cret'],
    ['before other parameters', '/hook?token=s3cret&b=2'],
    ['percent-encoded', '/hook?token=%733cret'],
    ['under a percent-encoded name', '/hook?t%6Fken=s3cret'],
    ['before a fragment', '/hook?token=s3cret#top'],
    ['after another question mark', '/hook?a=?&token=s3cret'],
    ['in an absolute URL', 'https://example.com:8443/hook?token=s3cret'],
  ])('finds the token %s', async (_, url) => {
    expect(await verdict(verifier, at(url))).toBe('verified')
  })

  test.each([
    ['a URL without a query', '/hook', /missing/],
    ['a URL without the parameter', '/hook?Token=s3cret', /missing/],
    ['an empty token', '/hook?token=', /missing/],
    ['a bare name', '/hook?token', /missing/],
    ['another token', '/hook?token=guess', /wrong/],
    ['the token in another case', '/hook?token=S3CRET', /wrong/],
    ['the beginning of the token', '/hook?token=s3cre', /wrong/],
    ['more than the token', '/hook?token=s3crets', /wrong/],
    ['a malformed percent-encoding', '/hook?token=%E0%A4%A', /wrong/],
    ['the token under a malformed name', '/hook?%E0%A4%A=s3cret&=s3cret', /missing/],
    ['the token twice', '/hook?token=s3cret&token=s3cret', /several/],
    ['the token beside a wrong one', '/hook?token=guess&token=s3cret', /several/],
    ['an oversized token', `/hook?token=${'s'.repeat(4_097)}`, /too long/],
    ['the token as the path', '/s3cret', /missing/],
  ])('does not verify %s', async (_, url, reason) => {
    expect(await verdict(verifier, at(url))).toMatch(reason)
  })

  test.each(['a+b/c==', 'a b/c=='])('verifies %s in every encoding of its plus or space', async (secret) => {
    const verifier = urlToken({ secret })
    for (const url of ['/?token=a+b/c==', '/?token=a%2Bb%2Fc%3D%3D', '/?token=a%20b/c==']) {
      expect(await verdict(verifier, at(url))).toBe('verified')
    }
    expect(await verdict(verifier, at('/?token=ab/c=='))).toMatch(/wrong/)
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const rotating = urlToken({ secret: ['new', 'old'] })
    expect(await verdict(rotating, at('/?token=new'))).toBe('verified')
    expect(await verdict(rotating, at('/?token=old'))).toBe('verified')
    expect(await verdict(rotating, at('/?token=older'))).toMatch(/wrong/)
  })
})

describe('urlToken in the path', () => {
  const verifier = urlToken({ secret: 's3cret', in: 'path' })

  test.each(['s3cret', awkward])('verifies what its signer makes of %s', async (secret) => {
    for (const url of ['/hook', '/hook?a=1', 'https://example.com/hook?a=1']) {
      const delivery = await makeDelivery(payload, { url, sign: signWithUrlToken({ secret, in: 'path' }) })
      expect(await verdict(urlToken({ secret, in: 'path' }), delivery)).toBe('verified')
    }
  })

  test.each([
    ['another last segment', '/s3cret/other', /wrong/],
    ['a slash after the token', '/hook/s3cret/', /missing: its path ends with a slash/],
    ['an empty last segment', '/', /missing/],
    ['a malformed percent-encoding', '/hook/%E0%A4%A', /missing/],
    ['an oversized segment', `/hook/${'s'.repeat(4_097)}`, /too long/],
    ['the token in the query', '/hook?token=s3cret', /wrong/],
    ['the token behind a slash in the query', '/hook?a=/s3cret', /wrong/],
    ['the token behind a slash in the fragment', '/hook#/s3cret', /wrong/],
  ])('does not verify %s', async (_, url, reason) => {
    expect(await verdict(verifier, at(url))).toMatch(reason)
  })
})

describe('urlToken', () => {
  test('does not need the bytes', () => expect(urlToken({ secret: 's' }).needsBytes).toBe(false))

  test.each([
    ['an empty parameter', { parameter: '' }],
    ['a parameter in the path', { in: 'path', parameter: 'key' } as const],
  ])('cannot be built with %s', (_, options) => {
    expect(messageOfBuild(() => urlToken({ secret: 's3cret', ...options }))).toMatch(/parameter/)
  })

  test('cannot be built with another place', () => {
    expect(messageOfBuild(() => urlToken({ secret: 's3cret', in: 'header' as 'path' }))).toMatch(
      /^urlToken: in .*query, path/,
    )
  })
})
