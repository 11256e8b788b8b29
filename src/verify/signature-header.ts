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
import type { SignatureEncoding } from '../internal/crypto/encoding.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { maxCredentialLength } from './credentials.ts'
import { maxSignatures, type Signed, timestampFault } from './signatures.ts'
import { type FillTemplate, readTemplate, type SignedTemplate } from './signed-content.ts'
import { notVerified, type SignedDelivery, type Verification, type Verifier } from './verifier.ts'

/** The options of `hmacSignature` and `publicKeySignature`: where the signature is, and what it covers. */
export interface SignatureHeaderOptions {
  /** The header with the signature. */
  readonly header: string
  /** @defaultValue 'hex' */
  readonly encoding?: SignatureEncoding
  /**
   * The text before each signature, such as `sha256=`.
   * @defaultValue ''
   */
  readonly prefix?: string
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
   * `v0:{timestamp}:{body}`, Discord and SendGrid `{timestamp}{body}`. `{form}` in its place stands for the names and values of
   * a form, sorted by name, as Twilio signs them: `https://example.com{url}{form}`. A timestamp outside the signature proves
   * nothing: sign it if the sender gives you the choice.
   * @defaultValue '{timestamp}.{body}' with a timestamp, otherwise '{body}'
   */
  readonly signed?: SignedTemplate
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

export const signatureHeaderRules: Rules<SignatureHeaderOptions> = {
  header: required(headerName),
  encoding: oneOf('hex', 'base64'),
  prefix: anyText,
  timestamp: checkedApart,
  signed: text,
  now: aFunction,
}

const timestampRules = { header: required(headerName), toleranceSeconds: wholeNumber() }

/**
 * Makes a verifier of a function that checks signatures.
 * @throws WebhookError `invalid_option`
 */
export function signatureHeaderVerifier(
  owner: string,
  options: SignatureHeaderOptions & { readonly separator?: string | undefined },
  check: (signed: Signed, delivery: SignedDelivery) => MaybePromise<Verification>,
): Verifier {
  const { header, encoding = 'hex', prefix = '', separator, timestamp, now = Date.now } = options
  if (timestamp !== undefined) checkOptions(`${owner}: timestamp`, timestamp, timestampRules)
  const toleranceSeconds = timestamp?.toleranceSeconds ?? 300
  const fill = signedContentOf(owner, options)

  return {
    name: owner,
    needsBytes: true,
    verify(delivery) {
      const { headers } = delivery
      const value = headers.get(header)
      if (value === null) return notVerified(`header ${header} is missing`)
      const signatures = readSignatures(value, prefix, encoding, separator)
      if (signatures === undefined) return notVerified(`header ${header} is malformed`)
      const time = timestamp === undefined ? '' : headers.get(timestamp.header)
      if (time === null) return notVerified(`header ${timestamp?.header} is missing`)
      const fault = timestamp && timestampFault(time, toleranceSeconds, now)
      if (fault !== undefined) return notVerified(fault)
      return check({ signatures, ...fill(delivery, time) }, delivery)
    },
  }
}

/** @throws WebhookError `invalid_option` */
export function signedContentOf(
  owner: string,
  { timestamp, signed }: Pick<SignatureHeaderOptions, 'timestamp' | 'signed'>,
): FillTemplate {
  const hasTimestamp = timestamp !== undefined
  return readTemplate(owner, signed ?? (hasTimestamp ? '{timestamp}.{body}' : '{body}'), hasTimestamp)
}

// Strict: one malformed entry rejects the header. So does a header sent twice, which arrives joined by ', '.
function readSignatures(
  value: string,
  prefix: string,
  encoding: SignatureEncoding,
  separator: string | undefined,
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
