import { expect } from 'vitest'
import { createReceiver, type Delivery, lruStore, memoryInbox, type Verifier, WebhookError } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'

export const body = encodePayload(samplePayload('encoding.finished'))

// The default inbox makes room for 100,000 keys, which takes ten milliseconds.
const smallInbox = () => memoryInbox({ store: lruStore({ max: 10 }), maxWaiting: 10 })

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** A delivery with these header fields; pairs make it possible to send one of them twice. */
export function deliveryWith(fields: Record<string, string> | [string, string][] = {}, url = '/hook'): Delivery {
  return { method: 'POST', url, headers: new Headers(fields), body }
}

/** Header values as they are: the web's `Headers` would trim or refuse some of those that a test is about. */
export function exactHeaders(fields: Readonly<Record<string, string>>): Delivery['headers'] {
  return { get: (name) => fields[name.toLowerCase()] ?? null }
}

/** `verified` or the reason of the refusal, once a receiver has answered accordingly: 200 or 401, never 5xx. */
export async function verdict(verifier: Verifier, delivery: Delivery): Promise<string> {
  const bytes = delivery.body as Uint8Array
  const verification = await verifier.verify({ url: delivery.url, headers: delivery.headers, body: bytes })
  const { status } = await createReceiver({ verify: verifier, inbox: smallInbox(), logger: silent }).receive(delivery)
  expect(status).toBe(verification.verified ? 200 : 401)
  return verification.verified ? 'verified' : verification.reason
}

/** The message with which building something is refused as `invalid_option`. */
export function refusalToBuild(build: () => unknown): string {
  try {
    build()
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookError)
    expect(error).toHaveProperty('code', 'invalid_option')
    return (error as WebhookError).message
  }
  throw new Error('it was built')
}
