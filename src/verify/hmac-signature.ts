import { hmacKey } from '#crypto'
import {
  aFunction,
  anyText,
  checkedApart,
  checkOptions,
  headerName,
  oneOf,
  type Rules,
  required,
  text,
  wholeNumber,
} from '../internal/check-options.ts'
import type { HashAlgorithm, SignatureEncoding } from '../internal/crypto/encoding.ts'
import { encoder } from '../internal/utf8.ts'
import { maxCredentialLength } from './credentials.ts'
import { checkWith, type GetSecrets, type Secrets } from './secrets.ts'
import { checkSignatures, maxSignatures, timestampFault } from './signatures.ts'
import { type FillTemplate, readTemplate, type SignedTemplate } from './signed-content.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `hmacSignature`. */
export interface HmacSignatureOptions {
  /** The key, used as its UTF-8 bytes. */
  readonly secret: Secrets | GetSecrets
  /** The header with the signature. */
  readonly header: string
  /** @defaultValue 'sha256' */
  readonly algorithm?: HashAlgorithm
  /** @defaultValue 'hex' */
  readonly encoding?: SignatureEncoding
  /**
   * The text before each signature, such as `sha256=`.
   * @defaultValue ''
   */
  readonly prefix?: string
  /**
   * The text between signatures, for senders that put several in one header while they rotate their secret.
   * @defaultValue none: the header contains one signature
   */
  readonly separator?: string
  /** The header with the signing time in Unix seconds. */
  readonly timestamp?: {
    readonly header: string
    /**
     * How far that time may be from now, in both directions, in seconds.
     * @defaultValue 300
     */
    readonly toleranceSeconds?: number
  }
  /**
   * What is signed: text, `{timestamp}` and `{url}` (path and query), followed by `{body}`. Slack and Zoom sign
   * `v0:{timestamp}:{body}`. A timestamp outside the signature proves nothing: sign it if the sender gives you the choice.
   * @defaultValue '{timestamp}.{body}' with a timestamp, otherwise '{body}'
   */
  readonly signed?: SignedTemplate
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

const owner = 'hmacSignature'

const rules: Rules<HmacSignatureOptions> = {
  secret: checkedApart,
  header: required(headerName),
  algorithm: oneOf('sha256', 'sha1', 'sha512'),
  encoding: oneOf('hex', 'base64'),
  prefix: anyText,
  separator: text,
  timestamp: checkedApart,
  signed: text,
  now: aFunction,
}

const timestampRules = { header: required(headerName), toleranceSeconds: wholeNumber() }

/**
 * Accepts deliveries whose bytes are signed with an HMAC.
 * @throws WebhookError `invalid_option` for an unusable secret or options that contradict each other.
 */
export function hmacSignature(options: HmacSignatureOptions): Verifier {
  checkOptions(owner, options, rules)
  const settings = resolve(options)
  const { header, algorithm, encoding, timestamp, toleranceSeconds, now } = settings
  const fill = signedPrefixOf(options)
  const check = checkWith(
    owner,
    options.secret,
    checkSignatures(encoding, (secret) => hmacKey(algorithm, encoder.encode(secret))),
  )

  return {
    name: owner,
    needsBytes: true,
    verify(delivery) {
      const { headers, body } = delivery
      const value = headers.get(header)
      if (value === null) return notVerified(`header ${header} is missing`)
      const signatures = readSignatures(value, settings)
      if (signatures === undefined) return notVerified(`header ${header} is malformed`)
      const time = timestamp === undefined ? '' : headers.get(timestamp.header)
      if (time === null) return notVerified(`header ${timestamp?.header} is missing`)
      const fault = timestamp && timestampFault(time, toleranceSeconds, now)
      if (fault !== undefined) return notVerified(fault)
      return check({ signatures, prefix: fill(delivery, time), body }, delivery)
    },
  }
}

function resolve(options: HmacSignatureOptions) {
  const { header, algorithm = 'sha256', encoding = 'hex', prefix = '', separator } = options
  const { timestamp, now = Date.now } = options
  const toleranceSeconds = timestamp?.toleranceSeconds ?? 300
  if (timestamp !== undefined) checkOptions(`${owner}: timestamp`, timestamp, timestampRules)
  return { header, algorithm, encoding, prefix, separator, timestamp, toleranceSeconds, now }
}

/** @throws WebhookError `invalid_option` */
export function signedPrefixOf({
  timestamp,
  signed,
}: Pick<HmacSignatureOptions, 'timestamp' | 'signed'>): FillTemplate {
  const hasTimestamp = timestamp !== undefined
  return readTemplate(owner, signed ?? (hasTimestamp ? '{timestamp}.{body}' : '{body}'), hasTimestamp)
}

// Strict: one malformed entry rejects the header. So does a header sent twice, which arrives joined by ', '.
function readSignatures(
  value: string,
  { encoding, prefix, separator }: ReturnType<typeof resolve>,
): readonly string[] | undefined {
  if (value.length > maxCredentialLength) return undefined
  const entries = separator === undefined ? [value] : value.split(separator, maxSignatures + 1)
  if (entries.length > maxSignatures) return undefined
  const signatures = entries.map((entry) => readSignature(entry, prefix, encoding))
  return signatures.includes(undefined) ? undefined : (signatures as string[])
}

function readSignature(entry: string, prefix: string, encoding: SignatureEncoding): string | undefined {
  const signature = entry.slice(prefix.length)
  if (!entry.startsWith(prefix) || !wellFormed[encoding].test(signature)) return undefined
  return encoding === 'hex' ? signature.toLowerCase() : signature
}

const wellFormed = { hex: /^[0-9a-f]+$/i, base64: /^[A-Za-z0-9+/]+={0,2}$/ }
