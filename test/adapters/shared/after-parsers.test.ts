import { expect, test } from 'vitest'
import { afterParsers } from '../../../adapters/shared/after-parsers.ts'

const consumed = { method: 'POST', url: '/', headers: new Headers(), body: { parsed: undefined } }
const bytes = Buffer.from('{ "a": 1 }\n')
const trimmed = '{"a":1}'

test.each<[string, object, unknown]>([
  ['the bytes that a parser kept, not the text that it made of them', { rawBody: bytes, body: trimmed }, bytes],
  [
    'the text that a parser kept, not the bytes that it made of it',
    { rawBody: String(bytes), body: Buffer.from(trimmed) },
    bytes,
  ],
  ['the text that a parser made, if it kept nothing', { body: String(bytes) }, bytes],
  ['the bytes that a parser made, if it kept no original bytes', { rawBody: true, body: bytes }, bytes],
  ['the parsed body, if there is nothing else', { body: { a: 1 } }, { parsed: { a: 1 }, fix: 'do this' }],
])('a body that was consumed becomes %s', (_, request, body) => {
  expect(afterParsers(consumed, request, 'do this')).toEqual({ ...consumed, body })
})

test.each([
  ['nothing has read', async () => bytes],
  ['an adapter has found', bytes],
])('a body that %s stays', (_, body) => {
  const delivery = { ...consumed, body }
  expect(afterParsers(delivery, { rawBody: Buffer.from('other') }, 'do this')).toBe(delivery)
})

test.each<[string, Record<string, string>, string]>([
  ['puts back the byte order mark that the declared length has', { 'content-length': '14' }, '\uFEFF{ "a": 1 }\n'],
  ['adds nothing if no length is declared', {}, String(bytes)],
  ['adds nothing if the declared length is that of the text', { 'content-length': '11' }, String(bytes)],
  [
    'adds nothing if the length is that of compressed bytes',
    { 'content-length': '14', 'content-encoding': 'gzip' },
    String(bytes),
  ],
])('the text that a parser made %s', (_, fields, text) => {
  const { body } = afterParsers({ ...consumed, headers: new Headers(fields) }, { body: String(bytes) }, 'do this')
  expect(String(Buffer.from(body as Uint8Array))).toBe(text)
})
