import { describe, expect, test } from 'vitest'
import {
  basicAuth,
  headerToken,
  hmacSignature,
  type Secrets,
  standardWebhooks,
  timestampedSignature,
  urlToken,
} from '../../src/index.ts'
import { messageOfBuild } from './verdict.ts'

const verifiers = {
  urlToken: (secret: Secrets) => urlToken({ secret }),
  headerToken: (secret: Secrets) => headerToken({ secret, header: 'x-token' }),
  basicAuth: (secret: Secrets) => basicAuth({ username: 'media', password: secret }),
  hmacSignature: (secret: Secrets) => hmacSignature({ secret, header: 'x-signature' }),
  standardWebhooks: (secret: Secrets) => standardWebhooks({ secret }),
  timestampedSignature: (secret: Secrets) => timestampedSignature({ secret, header: 'x-signature' }),
}

const usable = 'c2VjcmV0bWFya2Vy'

const unusable: [what: string, secret: unknown, message: RegExp][] = [
  ['undefined', undefined, /environment variable unset/],
  ['null', null, /give a secret/],
  ['a number', 12_345_678, /give a secret/],
  ['an empty list', [], /give a secret/],
  ['an empty string', '', /is empty/],
  ['white space', '  ', /white space/],
  ['a newline at its end', `${usable}\n`, /newline/],
  ['a space at its beginning', ` ${usable}`, /white space/],
  ['a byte order mark at its beginning', `\uFEFF${usable}`, /white space/],
  ['undefined in a list', [usable, undefined], /secret 2 of 2 is not a string/],
  ['a number in a list', [12_345_678], /not a string/],
  ['an empty string in a list', [usable, ''], /secret 2 of 2 is empty/],
  ['a newline in a list', [`${usable}\n`, usable], /secret 1 of 2 .*newline/],
  ['an empty object', {}, /give a secret/],
  ['a boxed string', Object(usable), /give a secret/],
  ['bytes', new TextEncoder().encode(usable), /give a secret/],
  ['undefined in an object', { acme: usable, zoo: undefined }, /give a secret of zoo, .*environment variable unset/],
  ['an empty list in an object', { acme: usable, zoo: [] }, /give a secret of zoo/],
  ['an object in an object', { acme: { zoo: usable } }, /give a secret of acme/],
  ['an empty string in an object', { acme: usable, zoo: '' }, /secret 1 of 1, of zoo, is empty/],
  ['a newline in a list of an object', { acme: [usable, `${usable}\n`] }, /secret 2 of 2, of acme, .*newline/],
  ['of an owner without a name', { '': usable }, /name of a secret's owner is empty/],
  ['of two owners', { acme: `${usable}MTIz`, zoo: [usable, `${usable}MTIz`] }, /acme and zoo have the same secret/],
]

describe.each(Object.entries(verifiers))('a secret of %s', (name, build) => {
  test.each(unusable)('cannot be %s', (_, secret, message) => {
    const text = messageOfBuild(() => build(secret as Secrets))
    expect(text).toMatch(message)
    expect(text).toContain(name)
    expect(text).not.toContain(usable)
    expect(text).not.toContain('12345678')
  })

  test('can be a list in which one is twice', () => {
    expect(build({ acme: [usable, usable] }).name).toBe(name)
  })

  test('can be one string or a list', () => {
    expect(build(usable).name).toBe(name)
    expect(build([usable, `${usable}MTIz`]).name).toBe(name)
  })

  test('is not a property of the verifier', () => {
    expect(JSON.stringify(build(usable))).not.toContain(usable)
    const others = Object.keys(build(usable)).filter((name) => name !== 'withoutToken')
    expect(others.sort()).toEqual(['name', 'needsBytes', 'verify'])
  })
})
