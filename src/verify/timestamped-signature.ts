import { hmacKey } from '#crypto'
import { WebhookError } from '../errors.ts'
import {
  aFunction,
  checkedApart,
  checkOptions,
  headerName,
  type Rule,
  required,
  wholeNumber,
} from '../internal/check-options.ts'
import { encoder } from '../internal/utf8.ts'
import { maxCredentialLength } from './credentials.ts'
import { checkWith, type GetSecrets, type Secrets } from './secrets.ts'
import { checkSignatures, maxSignatures, timestampFault } from './signatures.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `timestampedSignature`. */
export interface TimestampedSignatureOptions {
  /** The key, used as its UTF-8 bytes. */
  readonly secret: Secrets | GetSecrets
  /** The header with the time and the signatures, such as `mux-signature`. */
  readonly header: string
  /**
   * The name of the time in the header.
   * @defaultValue 't'
   */
  readonly time?: string
  /**
   * The name of each signature in the header.
   * @defaultValue 'v1'
   */
  readonly signature?: string
  /**
   * Maximum difference between the signing time and now, in seconds.
   * @defaultValue 300
   */
  readonly toleranceSeconds?: number
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

const owner = 'timestampedSignature'

const entryName: Rule = [
  "a name such as 't', without '=', commas and white space",
  (value: unknown) => typeof value === 'string' && /^[^=,\s]+$/.test(value),
]

/**
 * Accepts deliveries with one header that holds the time and the signatures, such as `t=1700000000,v1=5257a8…`. Each
 * signature is the HMAC-SHA256 of `<time>.<body>` in hex. Works for Mux, Stripe, and (with `time: 'time', signature:
 * 'sig1'`) Cloudflare Stream.
 * @throws WebhookError `invalid_option` for an unusable secret, or if `time` equals `signature`.
 */
export function timestampedSignature(options: TimestampedSignatureOptions): Verifier {
  checkOptions(owner, options, {
    secret: checkedApart,
    header: required(headerName),
    time: entryName,
    signature: entryName,
    toleranceSeconds: wholeNumber(),
    now: aFunction,
  })
  const { secret, header, time: timeName = 't', signature = 'v1', toleranceSeconds = 300, now = Date.now } = options
  if (timeName === signature) throw new WebhookError('invalid_option', `${owner}: time must differ from signature`)
  const check = checkWith(
    owner,
    secret,
    checkSignatures('hex', (text) => hmacKey('sha256', encoder.encode(text))),
  )
  const malformed = `header ${header} is malformed: it needs one ${timeName}=… and 1 to ${maxSignatures} ${signature}=… in hex`

  return {
    name: owner,
    needsBytes: true,
    verify(delivery) {
      const { headers, body } = delivery
      const value = headers.get(header)
      if (value === null) return notVerified(`header ${header} is missing`)
      const entries = readEntries(value)
      const [time, ...otherTimes] = findValues(timeName, entries)
      const signatures = findValues(signature, entries)
      if (time === undefined || otherTimes.length > 0 || !areSignatures(signatures)) return notVerified(malformed)
      const fault = timestampFault(time, toleranceSeconds, now)
      if (fault !== undefined) return notVerified(fault)
      return check({ signatures: signatures.map((each) => each.toLowerCase()), prefix: `${time}.`, body }, delivery)
    },
  }
}

// Skips other names. One malformed entry rejects the header, as does sending it twice (joined by ', ').
function readEntries(value: string): readonly string[] {
  const entries = value.length > maxCredentialLength ? [] : value.split(',')
  return entries.every((entry) => /^[^=\s]+=\S+$/.test(entry)) ? entries : []
}

const findValues = (name: string, entries: readonly string[]): readonly string[] =>
  entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1))

const areSignatures = (texts: readonly string[]): boolean =>
  texts.length > 0 && texts.length <= maxSignatures && texts.every((text) => /^[0-9a-f]+$/i.test(text))
