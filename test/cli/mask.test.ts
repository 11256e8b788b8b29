import { expect, test } from 'vitest'
import { maskedUrl } from '../../src/cli/shared/mask.ts'

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
])('%s is printed as %s', (url, shown) => {
  expect(maskedUrl(url)).toBe(shown)
})

test('The end of the path is masked if it is known to be a token, whatever it looks like', () => {
  expect(maskedUrl('https://example.com/webhooks/s3cret?a=b', true)).toBe('https://example.com/webhooks/…?a=…')
  expect(maskedUrl('https://example.com/', true)).toBe('https://example.com/')
})
