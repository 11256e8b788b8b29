import { describe, expect, test } from 'vitest'
import { basicAuth } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithBasicAuth } from '../../src/testing/index.ts'
import { deliveryWith, exactHeaders, messageOfBuild, verdict } from './verdict.ts'

const base64 = (text: string, encoding: BufferEncoding = 'utf8') => Buffer.from(text, encoding).toString('base64')
const basic = (credentials: string) => deliveryWith({ authorization: `Basic ${credentials}` })
const verifier = basicAuth({ username: 'media', password: 's3cret' })

describe('basicAuth', () => {
  test.each([
    ['media', 's3cret'],
    ['media', 'with:colons:'],
    ['media', 'pässwörd 密码 😀'],
    ['médiä', 's3cret'],
    ['media', 'two words'],
  ])('verifies what its signer makes for %s and %s', async (username, password) => {
    const options = { username, password }
    const delivery = await makeDelivery(samplePayload('encoding.finished'), { sign: signWithBasicAuth(options) })
    expect(await verdict(basicAuth(options), delivery)).toBe('verified')
    expect(await verdict(basicAuth(options), basic(base64(`${username}:${password}`)))).toBe('verified')
  })

  test.each(['Basic', 'basic', 'BASIC', 'Basic '])('verifies the scheme written %o', async (scheme) => {
    const delivery = deliveryWith({ Authorization: `${scheme} ${base64('media:s3cret')}` })
    expect(await verdict(verifier, delivery)).toBe('verified')
  })

  test.each([
    ['another password', base64('media:guess'), /^header authorization is wrong$/],
    ['another username', base64('other:s3cret'), /wrong/],
    ['a moved colon', base64('medi:as3cret'), /wrong/],
    ['credentials without a colon', base64('medias3cret'), /wrong/],
    ['the password alone', base64(':s3cret'), /wrong/],
    ['bytes that are not UTF-8', base64('media:\xff\xfe', 'latin1'), /wrong/],
    ['credentials that are not base64', 'media:s3cret', /no Basic/],
    ['base64 without its padding', base64('media:s3cret!').replace(/=+$/, ''), /no Basic/],
    ['the URL-safe alphabet', '-_-_', /no Basic/],
    ['something after the credentials', `${base64('media:s3cret')} x`, /no Basic/],
    ['oversized credentials', base64('s'.repeat(4_000)), /too long/],
  ])('does not verify %s', async (_, credentials, reason) => {
    expect(await verdict(verifier, basic(credentials))).toMatch(reason)
  })

  test.each([
    ['a delivery without the header', {}, /missing/],
    ['an empty header', { authorization: '' }, /no Basic/],
    ['the scheme alone', { authorization: 'Basic' }, /no Basic/],
    ['another scheme', { authorization: `Bearer ${base64('media:s3cret')}` }, /no Basic/],
    ['the credentials in another header', { 'proxy-authorization': `Basic ${base64('media:s3cret')}` }, /missing/],
  ])('does not verify %s', async (_, fields: Record<string, string>, reason) => {
    expect(await verdict(verifier, { ...deliveryWith(), headers: exactHeaders(fields) })).toMatch(reason)
  })

  test('does not verify a header that was sent twice', async () => {
    const field: [string, string] = ['authorization', `Basic ${base64('media:s3cret')}`]
    expect(await verdict(verifier, deliveryWith([field, field]))).toMatch(/no Basic/)
  })

  test('verifies the old and the new password during a rotation', async () => {
    const rotating = basicAuth({ username: 'media', password: ['new', 'old'] })
    expect(await verdict(rotating, basic(base64('media:new')))).toBe('verified')
    expect(await verdict(rotating, basic(base64('media:old')))).toBe('verified')
    expect(await verdict(rotating, basic(base64('media:older')))).toMatch(/wrong/)
  })

  test.each(['', 'me:dia', ' media', 'media\n', undefined, 7])('cannot be built with the username %o', (username) => {
    const message = messageOfBuild(() => basicAuth({ username: username as string, password: 's3cret' }))
    expect(message).toMatch(/username without a colon/)
    expect(message).not.toContain('s3cret')
  })

  test('does not need the bytes', () => {
    expect(basicAuth({ username: 'media', password: 's3cret' }).needsBytes).toBe(false)
  })
})
