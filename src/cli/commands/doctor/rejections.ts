import { randomUUID } from 'node:crypto'
import type { Endpoint, TestEvent, Variation } from './endpoint.ts'
import { type Finding, inWords, mustReject, ok } from './finding.ts'

const encoder = new TextEncoder()

interface BadDelivery {
  /** Follows 'rejects'. */
  readonly what: string
  readonly fix: string
  readonly body?: (genuine: Uint8Array) => Uint8Array
  readonly variation?: Variation
  readonly accepted?: Finding['verdict']
}

const malformed = 'answer 400 to a body that is not an event, as createReceiver() does'
const fatally = 'decode it with a fatal TextDecoder, before any body parser'
const tooLarge = 'stop reading at a limit, such as 64 KiB, whatever Content-Length says, and answer 413'

/** Pads with spaces to 1 MiB + 1 byte. Still valid JSON. */
const large = (genuine: Uint8Array): Uint8Array => {
  const padded = new Uint8Array(2 ** 20 + 1).fill(0x20)
  padded.set(genuine)
  return padded
}

const badDeliveries: readonly BadDelivery[] = [
  { what: 'a body that is not JSON', body: withoutLastBrace, fix: malformed },
  { what: 'an empty body', body: () => new Uint8Array(), fix: malformed },
  // A warning: parsers such as express.json() replace the byte before the receiver sees it.
  { what: 'a body that is not UTF-8', body: notUtf8, fix: `${malformed}: ${fatally}`, accepted: 'warning' },
  { what: 'JSON that is not an object', body: () => encoder.encode('[]'), fix: malformed },
  { what: 'a media_id that is an object', body: objectAsMediaId, fix: `${malformed}: check the types of the fields` },
  { what: 'a body of 1 MiB', body: large, fix: tooLarge },
  { what: 'a body of 1 MiB without Content-Length', body: large, variation: { chunked: true }, fix: tooLarge },
  { what: 'a GET', variation: { method: 'GET' }, fix: 'accept POST only, and answer 405 to any other method' },
  { what: 'a PUT', variation: { method: 'PUT' }, fix: 'accept POST only, and answer 405 to any other method' },
  {
    what: 'text/plain',
    variation: { contentType: 'text/plain' },
    fix: 'accept application/json only, and answer 415 to any other type',
    // A warning: a forger gains nothing by it.
    accepted: 'warning',
  },
]

/** Checks that bad deliveries are rejected. Each is signed properly and has one fault. */
export async function* rejectsBadDeliveries(endpoint: Endpoint): AsyncIterable<Finding> {
  for (const { what, body, variation, fix, accepted } of badDeliveries) {
    // Other services have no media_id.
    if (body === objectAsMediaId && endpoint.sample !== undefined) continue
    const event = endpoint.newEvent()
    // New id: the endpoint may acknowledge the sample's id as a duplicate without reading the body.
    const bad: TestEvent = body === undefined ? event : { id: randomUUID(), body: body(event.body) }
    const reply = await endpoint.deliver(bad, variation)
    // 501 is right for a method or transfer coding that the server lacks.
    const mayLack = variation?.method !== undefined || variation?.chunked === true
    if (mayLack && reply.status === 501) yield ok(`rejects ${what}`, inWords(reply))
    else yield mustReject(`rejects ${what}`, reply, fix, accepted)
  }
}

function withoutLastBrace(genuine: Uint8Array): Uint8Array {
  return genuine.slice(0, genuine.lastIndexOf(0x7d))
}

/** Ends the last string with a byte that is never valid UTF-8. */
function notUtf8(genuine: Uint8Array): Uint8Array {
  const body = genuine.slice()
  body[body.lastIndexOf(0x22) - 1] = 0xff
  return body
}

function objectAsMediaId(genuine: Uint8Array): Uint8Array {
  return encoder.encode(JSON.stringify({ ...JSON.parse(new TextDecoder().decode(genuine)), media_id: {} }))
}
