import { describe, expect, test } from 'vitest'
import { headerToken } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithHeaderToken } from '../../src/testing/index.ts'
import { untyped } from '../support/untyped.ts'
import { deliveryWith, exactHeaders, messageOfBuild, verdict } from './verdict.ts'

const secret = 's3cret'
const bare = { secret, header: 'X-Token' }
const bearer = { secret, header: 'authorization', prefix: 'Bearer ' }

describe('headerToken', () => {
  test.each([
    ['a bare token', bare],
    ['a prefix', bearer],
    ['spaces within the secret', { ...bearer, secret: 'two words' }],
    ['a comma within the secret', { ...bare, secret: 'a, b' }],
  ])('verifies what its signer makes: %s', async (_, options) => {
    const delivery = await makeDelivery(samplePayload('encoding.finished'), { sign: signWithHeaderToken(options) })
    expect(await verdict(headerToken(options), delivery)).toBe('verified')
  })

  test.each(['Bearer', 'bearer', 'BEARER'])('verifies the scheme written %s', async (scheme) => {
    expect(await verdict(headerToken(bearer), deliveryWith({ Authorization: `${scheme} ${secret}` }))).toBe('verified')
  })

  test.each(['x-token', 'X-TOKEN', 'X-Token'])('finds the header written %s', async (name) => {
    expect(await verdict(headerToken(bare), deliveryWith({ [name]: secret }))).toBe('verified')
  })

  test.each([
    ['a delivery without the header', {}, /missing/],
    ['an empty header', { 'x-token': '' }, /missing/],
    ['another token', { 'x-token': 'guess' }, /^header X-Token is wrong$/],
    ['the token in another case', { 'x-token': 'S3CRET' }, /wrong/],
    ['the beginning of the token', { 'x-token': 's3cre' }, /wrong/],
    ['more than the token', { 'x-token': 's3crets' }, /wrong/],
    ['an oversized token', { 'x-token': 's'.repeat(4_097) }, /too long/],
    ['Latin-1', { 'x-token': 's3crèt' }, /wrong/],
  ])('does not verify %s', async (_, fields: Record<string, string>, reason) => {
    expect(await verdict(headerToken(bare), deliveryWith(fields))).toMatch(reason)
  })

  test('does not verify a header that was sent twice', async () => {
    const twice = deliveryWith([
      ['x-token', secret],
      ['x-token', secret],
    ])
    expect(await verdict(headerToken(bare), twice)).toMatch(/wrong/)
  })

  test.each([
    ['the token without its prefix', secret, /prefix/],
    ['another scheme', `Basic ${secret}`, /prefix/],
    ['the prefix alone', 'Bearer', /prefix/],
    ['two spaces after the scheme', `Bearer  ${secret}`, /wrong/],
  ])('does not verify %s', async (_, authorization, reason) => {
    expect(await verdict(headerToken(bearer), deliveryWith({ authorization }))).toMatch(reason)
  })

  test('does not verify a prefix with nothing after it', async () => {
    const delivery = { ...deliveryWith(), headers: exactHeaders({ authorization: 'Bearer ' }) }
    expect(await verdict(headerToken(bearer), delivery)).toMatch(/missing/)
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const rotating = headerToken({ secret: ['new', 'old'], header: 'x-token' })
    expect(await verdict(rotating, deliveryWith({ 'x-token': 'new' }))).toBe('verified')
    expect(await verdict(rotating, deliveryWith({ 'x-token': 'old' }))).toBe('verified')
    expect(await verdict(rotating, deliveryWith({ 'x-token': 'new, old' }))).toMatch(/wrong/)
  })

  test('cannot be built with a value that is not a header name', () => {
    for (const header of ['', 'x token', 'x-token:', 'x-tökèn', untyped(undefined)]) {
      expect(messageOfBuild(() => headerToken({ secret, header }))).toMatch(
        /^headerToken: header must be the name of a header/,
      )
    }
  })

  test('cannot be built with a secret that no header can carry', () => {
    for (const unsendable of ['sëcret', 'sec\nret', 'sec\u0000ret']) {
      const message = messageOfBuild(() => headerToken({ secret: unsendable, header: 'x-token' }))
      expect(message).toMatch(/printable ASCII/)
      expect(message).not.toContain(unsendable)
    }
    expect(messageOfBuild(() => headerToken({ secret: ['one', 'tw\u00f6'], header: 'x-token' }))).toMatch(
      /printable ASCII/,
    )
  })

  test('does not need the bytes', () => expect(headerToken(bare).needsBytes).toBe(false))
})
