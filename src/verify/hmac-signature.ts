import { hmacKey } from '#crypto'
import { checkHeaderName, checkNumbers } from '../check-options.ts'
import { WebhookError } from '../errors.ts'
import { decodeBytes, type SignatureEncoding } from './encoding.ts'
import type { HashAlgorithm } from './hash-algorithm.ts'
import { maxCredentialLength, readSecrets, type Secrets } from './secrets.ts'
import { maxSignatures, verifySignatures } from './signatures.ts'
import { timestampFault } from './timestamp.ts'
import { refused, type Verifier, verified } from './verifier.ts'

export interface HmacSignatureOptions {
  /** The key, used as the bytes of its UTF-8 text. */
  readonly secret: Secrets
  /** The header that carries the signature. */
  readonly header: string
  /** @defaultValue 'sha256' */
  readonly algorithm?: HashAlgorithm
  /** @defaultValue 'hex' */
  readonly encoding?: SignatureEncoding
  /**
   * What stands before each signature, such as `sha256=`.
   * @defaultValue ''
   */
  readonly prefix?: string
  /**
   * What stands between signatures, for a sender that sends several in one header while it changes its secret.
   * @defaultValue none: the header holds one signature
   */
  readonly separator?: string
  /** The header with the time of signing, in Unix seconds, and how many seconds it may differ from now (300). */
  readonly timestamp?: { readonly header: string; readonly toleranceSeconds?: number }
  /**
   * What is signed. A timestamp outside the signature proves nothing, so sign it where the sender lets you choose.
   * @defaultValue 'timestamp.body' with a timestamp, otherwise 'body'
   */
  readonly signedContent?: 'body' | 'timestamp.body'
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

/**
 * Accepts deliveries whose bytes are signed with an HMAC.
 * @throws WebhookError `invalid_option` for an unusable secret, or `timestamp.body` without a timestamp header.
 */
export function hmacSignature(options: HmacSignatureOptions): Verifier {
  const { header, algorithm = 'sha256', timestamp, now = Date.now } = options
  const toleranceSeconds = timestamp?.toleranceSeconds ?? 300
  const { signedContent = timestamp === undefined ? 'body' : 'timestamp.body' } = options
  checkHeaderName('hmacSignature', header)
  if (timestamp !== undefined) {
    checkHeaderName('hmacSignature', timestamp.header)
    checkNumbers('hmacSignature', { toleranceSeconds })
  }
  if (signedContent === 'timestamp.body' && timestamp === undefined) {
    throw new WebhookError('invalid_option', "hmacSignature: signedContent 'timestamp.body' needs a timestamp header")
  }
  const secrets = readSecrets('hmacSignature', options.secret)
  const keys = secrets.map((secret) => hmacKey(algorithm, new TextEncoder().encode(secret)))

  return {
    name: 'hmacSignature',
    needsBytes: true,
    verify({ headers, body }) {
      const value = headers.get(header)
      if (value === null) return refused(`header ${header} is missing`)
      const signatures = readSignatures(value, options)
      if (signatures === undefined) return refused(`header ${header} is malformed`)
      if (timestamp === undefined) return verifySignatures(keys, signatures, '', body, verified)

      const time = headers.get(timestamp.header)
      if (time === null) return refused(`header ${timestamp.header} is missing`)
      const fault = timestampFault(time, toleranceSeconds, now)
      if (fault !== undefined) return refused(fault)
      return verifySignatures(keys, signatures, signedContent === 'body' ? '' : `${time}.`, body, verified)
    },
  }
}

// Strict: one entry that is no signature spoils the header. That refuses a header sent twice, which arrives joined by
// a comma and a space.
function readSignatures(value: string, options: HmacSignatureOptions): Uint8Array[] | undefined {
  const { encoding = 'hex', prefix = '', separator } = options
  if (value.length > maxCredentialLength) return undefined
  const entries = separator === undefined ? [value] : value.split(separator, maxSignatures + 1)
  if (entries.length > maxSignatures) return undefined
  const signatures: Uint8Array[] = []
  for (const entry of entries) {
    const bytes = entry.startsWith(prefix) ? decodeBytes(entry.slice(prefix.length), encoding) : undefined
    if (bytes === undefined) return undefined
    signatures.push(bytes)
  }
  return signatures
}
