import { expect } from 'vitest'
import { createReceiver, type Delivery, type Verifier, WebhookError } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { smallInbox } from '../receiver/listening-receiver.ts'
import { silent } from '../support/silent.ts'

export const body = encodePayload(samplePayload('encoding.finished'))

/** Makes a delivery with these header fields. Pairs can send one field twice. */
export function deliveryWith(fields: Record<string, string> | [string, string][] = {}, url = '/hook'): Delivery {
  return { method: 'POST', url, headers: new Headers(fields), body }
}

/** Headers whose values stay as they are. The web's `Headers` would trim some of them and throw on others. */
export function exactHeaders(fields: Readonly<Record<string, string>>): Delivery['headers'] {
  return { get: (name) => fields[name.toLowerCase()] ?? null }
}

/**
 * Returns `verified`, or the reason why a verifier does not verify a delivery. Also checks that a receiver with this
 * verifier answers 200 or 401 accordingly.
 */
export async function verdict(verifier: Verifier, delivery: Delivery): Promise<string> {
  const bytes = delivery.body as Uint8Array
  const verification = await verifier.verify({ url: delivery.url, headers: delivery.headers, body: bytes })
  const { status } = await createReceiver({ verify: verifier, inbox: smallInbox(), logger: silent }).receive(delivery)
  expect(status).toBe(verification.verified ? 200 : 401)
  return verification.verified ? 'verified' : verification.reason
}

/** Returns the message of the `invalid_option` error that `build` throws. */
export function messageOfBuild(build: () => unknown): string {
  try {
    build()
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookError)
    expect(error).toHaveProperty('code', 'invalid_option')
    return (error as WebhookError).message
  }
  throw new Error('it was built')
}
