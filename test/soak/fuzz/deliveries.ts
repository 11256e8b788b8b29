import type { Delivery } from '../../../src/index.ts'
import { oneOf } from '../../support/seeded.ts'
import { fuzzedBody } from './bodies.ts'

type Random = () => number

const strange = [
  '',
  ' ',
  'a',
  '\u0000',
  '\ud800',
  'é',
  '%',
  '%00',
  '%ff',
  '%E0%A4%A',
  ',',
  ', ,',
  'x'.repeat(5_000),
  '__proto__',
]
const urls = [
  '/',
  '',
  '?',
  '/?token=%',
  '/?token=a%20token',
  '/?token=a&token=b',
  '//',
  '/%',
  'http://[',
  '/#',
  ...strange,
]
const types = [
  'text/plain',
  'application/json; charset=utf-16',
  'APPLICATION/JSON',
  'application/cloudevents+json',
  ...strange,
]
const encodings = ['gzip', 'identity', 'identity, gzip', ...strange]
const lengths = ['0', '-1', '1e9', '65537', 'NaN', '999999999999999999999', ...strange]
const times = ['0', '-1', '1e999', 'NaN', '99999999999999999999', `${Math.floor(Date.now() / 1_000)}`, ...strange]
const signatures = [
  '0'.repeat(64),
  'v1,',
  'v1,AAAA v1,BBBB',
  'v1,,v1',
  'sha256=',
  'f'.repeat(63),
  'v1 '.repeat(200),
  ...strange,
]
const credentials = [
  'Basic',
  'Basic ',
  'Basic !',
  'Basic dXNlcjpwYXNz',
  'basic Og==',
  'Basic /w==',
  'Bearer a',
  ...strange,
]

/** The header fields that the receiver reads, with values that may come. */
const fields: Readonly<Record<string, readonly string[]>> = {
  'content-type': types,
  'content-encoding': encodings,
  'content-length': lengths,
  'x-signature': signatures,
  'x-timestamp': times,
  'x-token': strange,
  'x-event-id': strange,
  'webhook-id': strange,
  'webhook-timestamp': times,
  'webhook-signature': signatures,
  authorization: credentials,
}
const names = Object.keys(fields)

/** A delivery with its bytes, for the report of a failure. */
export interface FuzzedDelivery {
  readonly delivery: Delivery
  readonly bytes: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

/** Makes a delivery. One in four has strange header fields. */
export function fuzzedDelivery(random: Random): FuzzedDelivery {
  const bytes = fuzzedBody(random)
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const isStrange = random() < 0.25
  if (isStrange) {
    for (let i = 0; i < 3; i++) {
      const name = oneOf(random, names)
      headers[name] = oneOf(random, fields[name] as readonly string[])
    }
  }
  const method = isStrange && random() < 0.05 ? oneOf(random, ['GET', 'PUT', 'post', '', 'OPTIONS']) : 'POST'
  const url = isStrange && random() < 0.5 ? oneOf(random, urls) : '/webhooks/media'
  const get = (name: string) => headers[name.toLowerCase()] ?? null
  return { delivery: { method, url, headers: { get }, body: bodyOf(random, bytes) }, bytes, headers }
}

/** Gives the bytes, or a reader of them, which can be cut off. */
function bodyOf(random: Random, bytes: Uint8Array): Delivery['body'] {
  const pick = random()
  if (pick < 0.7) return bytes
  if (pick < 0.72) return () => 'incomplete'
  const read = (limit: number) => (bytes.length > limit ? ('too_large' as const) : bytes)
  return pick < 0.85 ? read : async (limit) => read(limit)
}
