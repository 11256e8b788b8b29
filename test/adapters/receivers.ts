import {
  createReceiver,
  type DeliveryReport,
  hmacSignature,
  type MediaEvent,
  type ReceiverOptions,
  urlToken,
} from '../../src/index.ts'
import { makeDelivery } from '../../src/testing/deliver.ts'
import { encodePayload, samplePayload, signWithHmac, signWithUrlToken } from '../../src/testing/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'

const hmac = { secret: 'a shared secret', header: 'x-signature' }
const token = { secret: 'a token' }

/** A verifier that needs the exact bytes, and its signer. */
export const bytes = { verify: hmacSignature(hmac), sign: signWithHmac(hmac) }
/** A verifier that reads only the URL, and its signer. */
export const url = { verify: urlToken(token), sign: signWithUrlToken(token) }

/** The signer of a forged delivery: it adds no signature. */
export const forgery = { sign: async (draft: Parameters<typeof bytes.sign>[0]) => draft }

/** Makes a receiver that records its events, its delivery reports and its log lines. */
export function watchedReceiver({ sign: _, ...options }: ReceiverOptions & { readonly sign?: unknown }) {
  const handled: MediaEvent[] = []
  const reports: DeliveryReport[] = []
  const { logger, lines } = recordingLogger('info')
  const receiver = createReceiver({
    handlers: { 'encoding.finished': (event) => void handled.push(event) },
    hooks: { delivery: (report) => void reports.push(report) },
    logger,
    ...options,
  })
  return { receiver, handled, reports, lines }
}

/** Makes the body of a new event. */
export const freshBody = () => encodePayload(samplePayload('encoding.finished', { media_id: crypto.randomUUID() }))

/** Makes the body of a new event that begins with a byte order mark. */
export const withMark = () => Buffer.concat([Buffer.from('\uFEFF'), freshBody()])

/** Makes the arguments of `fetch` for a signed delivery. */
export async function signedRequest(target: string, { sign }: Pick<typeof bytes, 'sign'>, body = freshBody()) {
  const delivery = await makeDelivery(body, { url: target, sign })
  const headers = new Headers(delivery.headers as Headers)
  return { url: delivery.url, init: { method: 'POST', headers, body: new Uint8Array(body) } }
}

/** Posts a signed delivery. Resolves with its acknowledgement. */
export async function post(target: string, signer: Pick<typeof bytes, 'sign'>, body = freshBody()) {
  const { url, init } = await signedRequest(target, signer, body)
  const response = await fetch(url, init)
  return { status: response.status, body: await response.json() }
}
