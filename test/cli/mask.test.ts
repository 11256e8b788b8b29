import { expect, test } from 'vitest'
import { maskedUrl, secretsIn, withoutSecret } from '../../src/cli/shared/mask.ts'

test.each([
  [
    'https://media:s3cret@example.com/webhooks/media?token=s3cret&a=b#c',
    'https://…@example.com/webhooks/media?token=…&a=…',
  ],
  ['https://a-very-long-name-0123456789.example.com/', 'https://a-very-long-name-0123456789.example.com/'],
  ['/webhooks/a1b2c3d4e5f6a7b8', '/webhooks/…'],
  ['/A1B2C3D4E5F6A7B8/webhooks', '/…/webhooks'],
  ['/webhooks/AbCdEfGhIjKlMnOp', '/webhooks/…'],
  ['/webhooks/0f8fad5b-d9cb-469f-a165-70867728950e', '/webhooks/…'],
  ['/webhooks/a%20shared%20secret', '/webhooks/…'],
  ['/webhooks/jvkzqpwmxtrnbchg', '/webhooks/…'],
  ['/webhooks/media-encoding-finished/media_webhooks', '/webhooks/media-encoding-finished/media_webhooks'],
  ['/webhooks/s3cret', '/webhooks/s3cret'],
  ['/webhooks?0123456789abcdef', '/webhooks?…'],
  ['/webhooks?s3cret', '/webhooks?…'],
  ['/webhooks?c2VjcmV0IQ==', '/webhooks?…'],
  ['/webhooks?0123456789abcdef=1&tenant=5', '/webhooks?…&tenant=…'],
  ['/webhooks?=s3cret', '/webhooks?…'],
  ['/webhooks?token=s3cret?x&&b=', '/webhooks?token=…&…'],
  ['/webhooks?', '/webhooks?'],
])('%s is printed as %s', (url, shown) => {
  expect(maskedUrl(url)).toBe(shown)
})

test('The end of the path is masked if it is known to be a token, even if it looks like a word', () => {
  expect(maskedUrl('https://example.com/webhooks/s3cret?a=b', true)).toBe('https://example.com/webhooks/…?a=…')
  expect(maskedUrl('https://example.com/', true)).toBe('https://example.com/')
})

test('A receiver that repeats parts of its URL reveals none of them', () => {
  const url = 'https://media:pass%20word@example.com/a1b2c3d4e5f6a7b8/x?token=s3%2Fcr+et&a=1&0123456789abcdef'
  const repeated = [
    ...['media', 'pass word', 'pass%20word', Buffer.from('media:pass word').toString('base64'), 'a1b2c3d4e5f6a7b8'],
    ...['s3/cr et', 's3%2Fcr+et', 's3%2Fcr%20et', '0123456789abcdef'],
  ]
  for (const part of repeated) expect(withoutSecret(`Cannot POST ${part}`, ...secretsIn(url))).toBe('Cannot POST …')
  expect(withoutSecret('answer 1', ...secretsIn(url))).toBe('answer 1')
})

test('A secret that contains another one is masked as a whole, in any order', () => {
  const url = 'https://media:media-s3cret@example.com/webhooks?token=s3cret&old=s3cret-2025'
  for (const secrets of [secretsIn(url), secretsIn(url).toReversed()])
    expect(withoutSecret('media-s3cret and s3cret-2025 are wrong', ...secrets)).toBe('… and … are wrong')
})

test.each([
  ['cat', 'the catalogue of a cat', 'the catalogue of a …'],
  ['a.b', 'a.b axb xa.b', '… axb xa.b'],
  ['s3cret', 'token=s3cret&a=s3cret_1', 'token=…&a=…_1'],
  ['Og==', 'Og== xOg==', '… xOg=='],
  ['a+b-c|', 'a+b-c| aab-c|', '… aab-c|'],
  ['a-shared-secret', 'xa-shared-secretx', 'x…x'],
])('The secret %s in %j: only a long one is masked inside other words', (secret, text, masked) => {
  expect(withoutSecret(text, secret)).toBe(masked)
})
