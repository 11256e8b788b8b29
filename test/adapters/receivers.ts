import {
  createReceiver,
  type DeliveryReport,
  hmacSignature,
  type Logger,
  type MediaEvent,
  type ReceiverOptions,
  urlToken,
} from '../../src/index.ts'
import { makeDelivery } from '../../src/testing/deliver.ts'
import { encodePayload, samplePayload, signWithHmac, signWithUrlToken } from '../../src/testing/index.ts'

const hmac = { secret: 'a shared secret', header: 'x-signature' }
const token = { secret: 'a token' }

/** A verifier that needs the exact bytes, and what signs for it. */
export const bytes = { verify: hmacSignature(hmac), sign: signWithHmac(hmac) }
/** A verifier that looks at the URL alone, and what signs for it. */
export const url = { verify: urlToken(token), sign: signWithUrlToken(token) }

/** What a forger signs with: nothing. */
export const forgery = { sign: async (draft: Parameters<typeof bytes.sign>[0]) => draft }

/** A receiver that keeps what it handled, what it reported and what it logged. */
export function watchedReceiver(options: Pick<ReceiverOptions, 'verify'> & Partial<ReceiverOptions>) {
  const handled: MediaEvent[] = []
  const reports: DeliveryReport[] = []
  const lines: { level: keyof Logger; message: string }[] = []
  const log = (level: keyof Logger) => (_: object, message: string) => void lines.push({ level, message })
  const receiver = createReceiver({
    handlers: { 'encoding.finished': (event) => void handled.push(event) },
    hooks: { delivery: (report) => void reports.push(report) },
    logger: { debug: () => {}, info: log('info'), warn: log('warn'), error: log('error') },
    ...options,
  })
  return { receiver, handled, reports, lines }
}

/** The body of an event that was not sent before. */
export const freshBody = () => encodePayload(samplePayload('encoding.finished', { media_id: crypto.randomUUID() }))

/** A delivery as `fetch` takes it. */
export async function signedRequest(target: string, { sign }: Pick<typeof bytes, 'sign'>, body = freshBody()) {
  const delivery = await makeDelivery(body, { url: target, sign })
  const headers = new Headers(delivery.headers as Headers)
  return { url: delivery.url, init: { method: 'POST', headers, body: new Uint8Array(body) } }
}

/** Posts a signed delivery and reads its acknowledgement. */
export async function post(target: string, signer: Pick<typeof bytes, 'sign'>, body = freshBody()) {
  const { url, init } = await signedRequest(target, signer, body)
  const response = await fetch(url, init)
  return { status: response.status, body: await response.json() }
}
