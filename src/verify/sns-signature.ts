import { verifySignature } from '#crypto'
import { aFunction, checkOptions, isPlainObject, type Rule, required } from '../internal/check-options.ts'
import { decodeBase64 } from '../internal/crypto/encoding.ts'
import { fatalDecoder } from '../internal/utf8.ts'
import { certificateCache, type SigningCertificate } from './sns-certificates.ts'
import { notVerified, type Verifier, verified } from './verifier.ts'

/** The options of `snsSignature`. */
export interface SnsSignatureOptions {
  /** The ARN of your topic, or several. Anybody can make a topic that posts messages signed by Amazon to your URL. */
  readonly topicArn: string | readonly string[]
  /**
   * Fetches Amazon's certificates.
   * @defaultValue the `fetch` of the runtime
   */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

const topicArns: Rule = [
  'the ARN of a topic, such as arn:aws:sns:us-east-1:123456789012:media, or a list of them',
  (value: unknown) => {
    const arns: unknown[] = Array.isArray(value) ? value : [value]
    return arns.length > 0 && arns.every((arn) => typeof arn === 'string' && /^arn:[\w-]+:sns(:[\w.-]+){3}$/.test(arn))
  },
]

/** The signed fields of each type of message, in their order. */
const confirmation = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
const signedFields = new Map<unknown, readonly string[]>([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', confirmation],
  ['UnsubscribeConfirmation', confirmation],
])

// A region and no other label: sns.s3.amazonaws.com is somebody's bucket. The URL is not parsed, so no parser can differ.
const certificateUrl = /^https:\/\/sns\.[a-z]{2}(-[a-z]+)+-\d+\.amazonaws\.com(\.cn)?\/[\w-]+\.pem$/

/**
 * Accepts messages of your Amazon SNS topics. Their ids become the event keys. Fetches the certificate of the signature
 * from Amazon and keeps it; while that fails, deliveries are answered 503.
 * @throws WebhookError `invalid_option` for what is not the ARN of a topic.
 */
export function snsSignature(options: SnsSignatureOptions): Verifier {
  checkOptions('snsSignature', options, { topicArn: required(topicArns), fetch: aFunction, now: aFunction })
  const { topicArn, fetch = (url, init) => globalThis.fetch(url, init), now = Date.now } = options
  const topics = new Set<unknown>([topicArn].flat())
  const load = certificateCache(fetch)

  return {
    name: 'snsSignature',
    needsBytes: true,
    async verify({ body }) {
      const message = readMessage(body)
      if (message === undefined) return notVerified('the body is not a JSON object, or has a name twice')
      const { TopicArn, MessageId, SignatureVersion, Signature, SigningCertURL } = message
      if (!topics.has(TopicArn)) return notVerified('TopicArn is not in topicArn')
      const text = signedText(message)
      if (text === undefined) return notVerified('a signed field is missing or malformed')
      if (SignatureVersion !== '1' && SignatureVersion !== '2') return notVerified('SignatureVersion is not 1 or 2')
      const signature = typeof Signature === 'string' ? decodeBase64(Signature) : undefined
      if (signature === undefined) return notVerified('Signature is malformed')
      if (typeof SigningCertURL !== 'string' || !certificateUrl.test(SigningCertURL))
        return notVerified('SigningCertURL is not the URL of a certificate of SNS')
      let certificate: SigningCertificate
      try {
        certificate = await load(SigningCertURL)
      } catch (error) {
        return { verified: false, unavailable: true, reason: 'the certificate of SNS cannot be fetched', error }
      }
      const { notBefore, notAfter, keys } = certificate
      const time = now()
      if (!(notBefore <= time && time <= notAfter)) return notVerified('the certificate is not valid at this time')
      const isSigned = await verifySignature(keys[SignatureVersion], text, new Uint8Array(), signature)
      return isSigned ? { ...verified, eventId: MessageId as string } : notVerified('the signature does not match')
    },
  }
}

/** Returns `undefined` for what is no JSON object, or has a name twice: parsers differ in which of the values counts. */
function readMessage(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const text = fatalDecoder.decode(body)
    const message: unknown = JSON.parse(text)
    return isPlainObject(message) && countNames(text) === Object.keys(message).length ? { ...message } : undefined
  } catch {
    return undefined
  }
}

/** Counts the names of the outermost object in valid JSON. */
function countNames(json: string): number {
  let depth = 0
  let names = 0
  for (const [token, colon] of json.matchAll(/[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (colon !== undefined && depth === 1) names++
  }
  return names
}

// Only Message may have several lines. Otherwise text in a message could pass for the fields after it, and one signature
// would fit two messages.
function signedText(message: Readonly<Record<string, unknown>>): string | undefined {
  let text: string | undefined
  for (const name of signedFields.get(message['Type']) ?? []) {
    const value = message[name]
    if (name === 'Subject' && (value === undefined || value === null)) continue
    if (typeof value !== 'string' || (name !== 'Message' && value.includes('\n'))) return undefined
    text = `${text ?? ''}${name}\n${value}\n`
  }
  return text
}
