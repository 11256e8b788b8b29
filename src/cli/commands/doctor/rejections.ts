import type { Endpoint, Manner, TestEvent } from './endpoint.ts'
import { type Finding, rejection } from './finding.ts'

const encoder = new TextEncoder()

interface BadDelivery {
  readonly what: string
  readonly fix: string
  /** The body in the place of an event's. */
  readonly body?: (genuine: Uint8Array) => Uint8Array
  readonly how?: Manner
  /** How bad it is when it is accepted. */
  readonly accepted?: Finding['verdict']
}

const malformed = 'answer 400 to what is no event, as createReceiver() does'
const fatally = 'read it with a fatal TextDecoder, before any body parser'
const tooLarge = 'stop reading at a limit, such as 64 KiB, whatever Content-Length says, and answer 413'

/** A body of 1 MiB and a byte: JSON, but for its size. */
const large = (genuine: Uint8Array): Uint8Array => {
  const padded = new Uint8Array(2 ** 20 + 1).fill(0x20)
  padded.set(genuine)
  return padded
}

const badDeliveries: readonly BadDelivery[] = [
  { what: 'a body that is no JSON', body: (genuine) => genuine.slice(0, -9), fix: malformed },
  { what: 'a body that is empty', body: () => new Uint8Array(), fix: malformed },
  // A body parser in front, such as express.json(), replaces the byte, and what comes after it sees nothing wrong.
  { what: 'a body that is not UTF-8', body: notUtf8, fix: `${malformed}: ${fatally}`, accepted: 'warning' },
  { what: 'JSON that is no object', body: () => encoder.encode('[]'), fix: malformed },
  { what: 'a media_id that is no string', body: numericMediaId, fix: `${malformed}: check the types of the fields` },
  { what: 'a body of 1 MiB', body: large, fix: tooLarge },
  { what: 'a body of 1 MiB that does not say its length', body: large, how: { chunked: true }, fix: tooLarge },
  { what: 'a GET', how: { method: 'GET' }, fix: 'take POST only, and answer 405' },
  { what: 'a PUT', how: { method: 'PUT' }, fix: 'take POST only, and answer 405' },
  { what: 'text/plain', how: { contentType: 'text/plain' }, fix: 'take application/json only, and answer 415' },
]

const asItIs = (genuine: Uint8Array): Uint8Array => genuine

/** Whether what is no delivery is rejected. Each is signed as a genuine one, so that its fault is the only one. */
export async function* rejectsBadDeliveries(endpoint: Endpoint): AsyncIterable<Finding> {
  for (const { what, body = asItIs, how, fix, accepted } of badDeliveries) {
    const event = endpoint.newEvent()
    const bad: TestEvent = { ...event, body: body(event.body) }
    yield rejection(`rejects ${what}`, await endpoint.deliver(bad, how), fix, accepted)
  }
}

/** The title, `Test.mp4`, with a byte that is in no UTF-8 text. */
function notUtf8(genuine: Uint8Array): Uint8Array {
  const body = genuine.slice()
  body[Buffer.from(body).indexOf('Test.mp4')] = 0xff
  return body
}

function numericMediaId(genuine: Uint8Array): Uint8Array {
  return encoder.encode(JSON.stringify({ ...JSON.parse(new TextDecoder().decode(genuine)), media_id: 42 }))
}
