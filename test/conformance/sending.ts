import { hmacSignature, urlToken } from '../../src/index.ts'
import { makeDelivery } from '../../src/testing/deliver.ts'
import { encodePayload, type Payload, type Signer, samplePayload, signWithHmac } from '../../src/testing/index.ts'
import { connectTo, requestHead } from '../contract/suites/adapter/connection.ts'

/** The signature scheme of most scenarios. */
export const signature = {
  secret: 'signing-secret-7d1f',
  header: 'x-signature',
  timestamp: { header: 'x-timestamp' },
} as const
export const verify = hmacSignature(signature)
export const sign = signWithHmac(signature)
/** Signs as the sender would, with the clock moved by the given seconds. */
export const signLater = (seconds: number) => signWithHmac({ ...signature, now: () => Date.now() + seconds * 1_000 })

/** A secret in the URL, for the emulator's sender: like the service, it signs nothing. */
export const token = 'url-token-93c2'
export const verifyToken = urlToken({ secret: token })
export const withToken = (url: string) => `${url}?token=${token}`

const decoder = new TextDecoder()

/** Makes the body of a new event. */
export const freshBody = (fields: Partial<Payload> = {}) =>
  encodePayload(samplePayload('encoding.finished', { media_id: crypto.randomUUID(), ...fields }))

export const textOf = (body: Uint8Array) => decoder.decode(body)

export interface SendOptions {
  readonly sign?: Signer
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Makes a signed delivery and returns the answer. `sign: undefined` leaves it unsigned. */
export async function send(url: string, body: Uint8Array, options: SendOptions = { sign }) {
  const [answer] = await sendAtOnce(1, url, body, options)
  return answer as { status: number; body: string }
}

/** Makes the same delivery on several connections at the same instant. */
export async function sendAtOnce(times: number, url: string, body: Uint8Array, options: SendOptions = { sign }) {
  const { method = 'POST', headers = {}, sign } = options
  const delivery = await makeDelivery(body, { url, headers, ...(sign && { sign }) })
  const fields = [...(delivery.headers as Headers), ['Content-Length', String(body.byteLength)] as const]
  const request = Buffer.concat([Buffer.from(requestHead(method, delivery.url, fields)), body])
  const connections = await Promise.all(Array.from({ length: times }, () => connectTo(url)))
  for (const connection of connections) connection.send(request.subarray(0, -1))
  // The receiver now waits for the last byte on all of them.
  if (times > 1) await new Promise((resolve) => setTimeout(resolve, 10))
  for (const connection of connections) connection.send(request.subarray(-1))
  try {
    return await Promise.all(connections.map((connection) => connection.answer(method)))
  } finally {
    for (const connection of connections) connection.destroy()
  }
}
