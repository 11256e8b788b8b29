import { eventTypes } from '../../../src/index.ts'
import { encodePayload, type Payload, samplePayload } from '../../../src/testing/index.ts'
import { oneOf } from '../../support/seeded.ts'

type Random = () => number

const encoder = new TextEncoder()
const below = (random: Random, limit: number) => Math.floor(random() * limit)

/** JSON values that a parser, a store or a sum may take badly. */
const values: readonly string[] = [
  ...['null', 'true', '""', '"a"', '[]', '{}', '[[]]', '-0', '1e999', '-1e999', '1e-999', '0.1e1', '01', '+1', 'NaN'],
  ...['9007199254740993', '9'.repeat(400), '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\uD83D\\uDE00"', '"😀"'],
  ...['"__proto__"', '"constructor"', '"360p,,720p"', '","', '"2026-02-30T99:99:99Z"', '"0000-00-00T00:00:00Z"'],
  ...[
    '"275760-09-13T00:00:00.001Z"',
    '"2026-03-01T12:00:00.1234567890123Z"',
    `"${'x'.repeat(600)}"`,
    '"é"',
    '"e\u0301"',
  ],
  ...[
    '"\\u2028"',
    '"\u007f"',
    '"%s%n"',
    '"\'; DROP TABLE event; --"',
    '"\\\\"',
    '"{}"',
    '{"toJSON":1}',
    '{"length":{"toString":1}}',
    '{"then":{}}',
  ],
]

const names: readonly string[] = [
  ...['type', 'event', 'data', 'media_id', 'mediaId', 'videoId', 'video_id', 'emitted_at', 'emittedAt', 'qualities'],
  ...['title', 'status', 'media_type', 'mediaType', 'user_id', 'userId', '__proto__', 'constructor', 'prototype'],
  ...['toString', 'hasOwnProperty', 'toJSON', 'then', 'length', '0', '', '\\u0000', '\\ud800'],
]

const payload = (random: Random): Payload =>
  samplePayload(oneOf(random, eventTypes), {
    media_id: `media ${below(random, 50)}`,
    emitted_at: new Date(1.7e12 + below(random, 1e9)).toISOString(),
  })

const valid = (random: Random): Uint8Array => encodePayload(payload(random), random() < 0.5 ? 'flat' : 'envelope')

/** Writes a JSON value of random shape. */
function anyJson(random: Random, depth: number): string {
  const kind = depth > 0 ? random() : 0
  if (kind < 0.6) return oneOf(random, values)
  const items = Array.from({ length: below(random, 4) }, () => anyJson(random, depth - 1))
  if (kind < 0.75) return `[${items.join(',')}]`
  return `{${items.map((item) => `"${oneOf(random, names)}":${item}`).join(',')}}`
}

/** Writes a payload in which some members are replaced, repeated or added. */
function strangeMembers(random: Random): Uint8Array {
  const members = Object.entries(payload(random)).map(([name, value]) => `"${name}":${JSON.stringify(value)}`)
  for (let i = below(random, 4); i >= 0; i--) {
    const member = `"${oneOf(random, names)}":${anyJson(random, 2)}`
    const at = below(random, members.length + 1)
    if (random() < 0.5) members[at] = member
    else members.splice(at, 0, member)
  }
  const flat = `{${members.join(',')}}`
  return encoder.encode(random() < 0.5 ? flat : `{"event":"encoding.finished","data":${flat}}`)
}

/** Changes, removes, inserts and repeats bytes. */
function mutated(random: Random): Uint8Array {
  let bytes = valid(random)
  for (let i = below(random, 3); i >= 0; i--) {
    const at = below(random, bytes.length + 1)
    const cut = below(random, 5)
    const length = below(random, 5)
    const from = below(random, bytes.length)
    const put = random() < 0.3 ? bytes.subarray(from, from + 40) : randomBytes(random, length)
    const next = new Uint8Array(at + put.length + Math.max(0, bytes.length - at - cut))
    next.set(bytes.subarray(0, at))
    next.set(put, at)
    next.set(bytes.subarray(at + cut), at + put.length)
    bytes = next
  }
  return bytes
}

function randomBytes(random: Random, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = below(random, 256)
  return bytes
}

const broken = [
  [0x80],
  [0xc3],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xff, 0xfe],
  [0xef, 0xbb, 0xbf],
]

/** Puts bytes that are not UTF-8 into a payload, at its start, at its end or in between. */
function brokenUtf8(random: Random): Uint8Array {
  const bytes = [...valid(random)]
  bytes.splice(oneOf(random, [0, bytes.length, below(random, bytes.length)]), 0, ...oneOf(random, broken))
  return Uint8Array.from(bytes)
}

/** Nests lists or objects in a payload. */
function deep(random: Random): Uint8Array {
  const depth = oneOf(random, [60, 63, 64, 65, 66, 200, 2_000, 12_000])
  const [open, close] = oneOf(random, [['[', ']'] as const, ['{"a":', '}'] as const])
  const end = random() < 0.8 ? close.repeat(depth) : ''
  return encoder.encode(`{"type":"a","media_id":"b","extra":${open.repeat(depth)}1${end}}`)
}

/** Makes a payload around the size limit. */
function large(random: Random): Uint8Array {
  const length = 65_300 + below(random, 400)
  return encodePayload({ ...payload(random), title: 't'.repeat(length - 250) })
}

const kinds: readonly (readonly [share: number, make: (random: Random) => Uint8Array])[] = [
  [0.4, mutated],
  [0.7, strangeMembers],
  [0.8, (random) => encoder.encode(anyJson(random, 4))],
  [0.88, (random) => randomBytes(random, below(random, 60))],
  [0.95, brokenUtf8],
  [0.955, deep],
  [0.956, large],
  [1, valid],
]

/** Makes a body: most are payloads with faults, and some are valid. */
export function fuzzedBody(random: Random): Uint8Array {
  const pick = random()
  const [, make] = kinds.find(([share]) => pick < share) as (typeof kinds)[number]
  return make(random)
}
