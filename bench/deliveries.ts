import { createHmac } from 'node:crypto'

export const path = '/webhooks/media'
export const secret = 'c2VjcmV0LW9mLXRoZS1iZW5jaG1hcms='

/** The signature headers that a contender expects: ours, GitHub's or those of Standard Webhooks. */
export type Scheme = 'x-signature' | 'github' | 'standard-webhooks'

/** A new event, a duplicate, or one with a wrong signature. */
export type Kind = 'new' | 'duplicate' | 'forged'

export interface SignedDelivery {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const firstEmission = Date.UTC(2026, 2, 1)
const webhookKey = Buffer.from(secret, 'base64')

const uuid = (number: number) => `7d9f0c52-6a1e-4c83-9b57-${number.toString(16).padStart(12, '0')}`

/** Reads the number of a delivery from its media id, so that runs of the handler can be counted for each event. */
export const numberOf = (mediaId: string) => Number.parseInt(mediaId.slice(24), 16)

/** Makes a flat payload as the service writes it. Each number is a different event. */
function bodyOf(number: number, type: string): Buffer {
  const payload = {
    type,
    emitted_at: new Date(firstEmission + number).toISOString(),
    media_id: uuid(number),
    qualities: '360p,480p,720p,1080p',
    title: 'Holiday in the mountains.mp4',
    status: 'done',
    media_type: 'video',
    user_id: '0b6d1f0e-52c4-4c0f-8a35-9f3f5b1f7a11',
  }
  return Buffer.from(JSON.stringify(payload))
}

const signatureHeaders: Record<Scheme, (body: Buffer, number: number) => Record<string, string>> = {
  'x-signature': (body) => ({ 'x-signature': createHmac('sha256', secret).update(body).digest('hex') }),
  github: (body, number) => ({
    'x-github-event': 'release',
    'x-github-delivery': uuid(number),
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  }),
  'standard-webhooks': (body, number) => {
    const timestamp = Math.floor(Date.now() / 1000)
    const id = `msg_${number}`
    const signature = createHmac('sha256', webhookKey).update(`${id}.${timestamp}.`).update(body).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': `${timestamp}`, 'webhook-signature': `v1,${signature}` }
  },
}

/** Makes the signed delivery of a number. */
export function signedDelivery(
  number: number,
  scheme: Scheme = 'x-signature',
  type = 'encoding.finished',
): SignedDelivery {
  const body = bodyOf(number, type)
  return { body, headers: { 'content-type': 'application/json', ...signatureHeaders[scheme](body, number) } }
}

/** Makes deliveries of a kind. Duplicates are those of the first numbers. */
export function deliveriesOf(kind: Kind, first: number, count: number, scheme?: Scheme): SignedDelivery[] {
  const start = kind === 'new' ? first : 0
  return Array.from({ length: count }, (_, index) => {
    const delivery = signedDelivery(start + index, scheme)
    return kind === 'forged' ? { ...delivery, headers: { ...delivery.headers, ...forgedSignature } } : delivery
  })
}

const forgedSignature = { 'x-signature': createHmac('sha256', 'of another').update('body').digest('hex') }

/** Makes the delivery that an adapter passes to the receiver, with its body read. */
export function toDelivery({ body, headers }: SignedDelivery) {
  return { method: 'POST', url: path, headers: new HeaderFields(headers), body }
}

// A class: tsx adds code to every arrow function, which would be measured.
class HeaderFields {
  readonly #fields: Readonly<Record<string, string>>

  constructor(fields: Readonly<Record<string, string>>) {
    this.#fields = fields
  }

  get(name: string): string | null {
    return this.#fields[name] ?? null
  }
}
