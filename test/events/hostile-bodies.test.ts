import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { createReceiver, defineSender, type ListedEvent, unverified } from '../../src/index.ts'
import { silent } from '../support/silent.ts'

/** In every value of a hostile body: no answer may have it. */
const secret = 'value-8d1f'

const data = z.object({ n: z.number() })
const events = { done: data }
const formType = { 'content-type': 'application/x-www-form-urlencoded' }
const gzipped = { 'content-encoding': 'gzip' }
const bytes = (text: string) => new TextEncoder().encode(text)
const json = (value: unknown) => bytes(JSON.stringify(value))

const senders = {
  form: defineSender({
    name: 'form',
    body: 'form',
    events: { done: z.object({}) },
    read: ({ type, film }) => ({ type, mediaId: film }),
  }),
  json: defineSender({
    name: 'json',
    gzip: true,
    events,
    read: ({ type, film, id, ...rest }) => ({ type, mediaId: film, id, data: rest }),
  }),
  list: defineSender({
    name: 'list',
    events,
    read: (list: { type: string; film: string; n: unknown }[]) =>
      list.map((each): ListedEvent => ({ type: each?.type, mediaId: each?.film, data: each })),
  }),
}

type Hostile = readonly [sender: keyof typeof senders, what: string, body: Uint8Array, headers?: Record<string, string>]

const good = { type: 'done', film: 'm', n: 1 }
const packed = gzipSync(JSON.stringify({ ...good, secret }))
const wrong = [null, true, 1.5, -1, [], [secret], {}, { [secret]: secret }, '', Number.MAX_VALUE]

const escapes = ['%', '%4', '%zz', '%ff', '%c0%af', '%ed%a0%80', '%e2%82', '%f8%88%80%80%80', '%80', '%u0041']
const names = ['a', '', 'a[b]', 'a[]', '%C3%A9', '__proto__', 'constructor', 'a b', '%00', 'type', 'x'.repeat(5_000)]
const notUtf8 = [
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xe2, 0x82],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0x7b, 0x00, 0xff],
]
const notJson = [
  '',
  ' ',
  '{',
  '[',
  '"',
  '{"a":}',
  '{a:1}',
  "{'a':1}",
  '{"a":1,}',
  '[1,]',
  'NaN',
  'undefined',
  '01',
  '{"a":01}',
  '{"a":1}}',
  '\u0000',
]

const hostile: readonly Hostile[] = [
  ...names.map(
    (name): Hostile => ['form', 'a field twice', bytes(`type=done&${name}=${secret}&b=1&${name}=${secret}`), formType],
  ),
  ...escapes.map(
    (broken): Hostile => ['form', 'a broken escape', bytes(`type=done&film=${secret}${broken}`), formType],
  ),
  ...notUtf8.map((more): Hostile => ['form', 'no UTF-8', new Uint8Array([...bytes(`a=${secret}`), ...more]), formType]),
  ['form', 'too many fields', bytes(Array.from({ length: 5_000 }, (_, n) => `${n}=`).join('&')), formType],
  ['form', 'nothing', bytes(''), formType],
  ['form', 'JSON', json({ ...good, secret }), formType],
  ...['type[a]=done&film=m', 'type=&film=m', 'type=done', 'type=done&film=', `${secret}=1`].map(
    (text): Hostile => ['form', 'a field in brackets or none', bytes(text), formType],
  ),
  ...['text/plain', 'multipart/form-data; boundary=x', 'application/json', 'application/x-www-form-urlencodedx'].map(
    (type): Hostile => ['form', 'another type', bytes(`type=done&film=${secret}`), { 'content-type': type }],
  ),
  ...notUtf8.map((more): Hostile => ['json', 'no UTF-8', new Uint8Array([...bytes(`{"type":"${secret}"`), ...more])]),
  ...notJson.map((text): Hostile => ['json', 'no JSON', bytes(text)]),
  ...[`"${secret}"`, '1', 'true', 'null', '820982911946154508'].map(
    (text): Hostile => ['json', 'no object', bytes(text)],
  ),
  ...['utf-16le', 'latin1'].map(
    (encoding): Hostile => [
      'json',
      encoding,
      Buffer.from(JSON.stringify({ ...good, film: 'é' }), encoding as BufferEncoding),
    ],
  ),
  ['json', 'too deep', bytes(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`)],
  ['json', 'too many values', bytes(`{"a":[${'{},'.repeat(5_000)}1]}`)],
  ['json', 'too large', bytes(`{"a":"${'x'.repeat(70_000)}"}`)],
  ...(['type', 'film'] as const).flatMap((field) =>
    // A number is a name, too.
    wrong
      .filter((value) => value !== -1)
      .map((value): Hostile => ['json', `a wrong ${field}`, json({ ...good, [field]: value })]),
  ),
  ...wrong.slice(3, 8).map((value): Hostile => ['json', 'a wrong n', json({ ...good, n: [value, secret] })]),
  ...['1e400', '-1e400', '820982911946154508', '1.00000000000000000001'].map(
    (number): Hostile => ['json', 'a number that is a text', bytes(`{"type":"done","film":"m","n":${number}}`)],
  ),
  ...Array.from(
    { length: packed.byteLength - 2 },
    (_, n): Hostile => ['json', 'gzip cut off', packed.subarray(0, n + 2), gzipped],
  ),
  ...Array.from(
    { length: 8 },
    (_, n): Hostile => [
      'json',
      'gzip with a wrong checksum or length',
      flipped(packed, packed.byteLength - 1 - n),
      gzipped,
    ],
  ),
  ...[1_000_000, 20_000_000].map((size): Hostile => ['json', 'a bomb', gzipSync(Buffer.alloc(size)), gzipped]),
  ['json', 'a bomb in a bomb', gzipSync(gzipSync(Buffer.alloc(1_000_000))), gzipped],
  ['json', 'more behind gzip', Buffer.concat([packed, bytes(secret)]), gzipped],
  ...['br', 'deflate', 'gzip, gzip', 'x-gzip', 'zstd'].map(
    (coding): Hostile => ['json', 'another coding', packed, { 'content-encoding': coding }],
  ),
  ...wrong
    .slice(0, 8)
    .flatMap((value) =>
      [0, 1, 2].map(
        (place): Hostile => ['list', `a wrong event ${place}`, json([good, good, good].with(place, value as never))],
      ),
    ),
  ...['type', 'film', 'n'].flatMap((field) =>
    [null, {}, [secret], true].map(
      (value): Hostile => ['list', `a wrong ${field} in a list`, json([good, { ...good, [field]: value }])],
    ),
  ),
  ['list', '1,001 events', json(Array.from({ length: 1_001 }, () => ({ type: 'done', film: 'm' })))],
  ['list', '10,000 events', json(Array(10_000).fill({}))],
  ['list', 'lists in a list', json([[[good]]])],
  ['list', 'an object', json(good)],
]

function flipped(given: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(given)
  copy[at] = (copy[at] as number) ^ 1
  return copy
}

/** What an answer has to name: a field, an event of a list, the body, or a header. */
const path =
  /^(field "|field [\w.]+|event \d+ of the list: (field [\w.]+|expected)|the body |the list |content-(type|encoding) |sender \w+ cannot read)/

test('there are 200 hostile bodies', () => expect(hostile.length).toBeGreaterThanOrEqual(200))

describe.each(Object.keys(senders) as (keyof typeof senders)[])('a hostile body for a sender of %s', (kind) => {
  const receiver = createReceiver({
    sender: senders[kind] as never,
    verify: unverified(),
    logger: silent,
    handlers: {},
  })

  test.each(hostile.filter(([sender]) => sender === kind).map(([, ...each]) => each))(
    'with %s gets a 4xx, with a path and no value',
    async (_, body, headers = {}) => {
      const answer = await receiver.receive({
        method: 'POST',
        url: '/',
        headers: new Headers(headers),
        body: () => body,
      })
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.status).toBeLessThan(500)
      expect(JSON.parse(answer.body).message).toMatch(path)
      expect(answer.body).not.toContain(secret)
    },
  )
})
