import { hmacKey } from '#crypto'
import { checkedApart, checkOptions, oneOf, type Rules, text } from '../internal/check-options.ts'
import type { HashAlgorithm } from '../internal/crypto/encoding.ts'
import { encoder } from '../internal/utf8.ts'
import { checkWith, type GetSecrets, type Secrets } from './secrets.ts'
import { type SignatureHeaderOptions, signatureHeaderRules, signatureHeaderVerifier } from './signature-header.ts'
import { checkSignatures } from './signatures.ts'
import type { Verifier } from './verifier.ts'

/** The options of `hmacSignature`. */
export interface HmacSignatureOptions extends SignatureHeaderOptions {
  /** The key, used as its UTF-8 bytes. */
  readonly secret: Secrets | GetSecrets
  /** @defaultValue 'sha256' */
  readonly algorithm?: HashAlgorithm
  /**
   * The text between signatures, for senders that put several in one header while they rotate their secret.
   * @defaultValue none: the header contains one signature
   */
  readonly separator?: string
}

const owner = 'hmacSignature'

const rules: Rules<HmacSignatureOptions> = {
  secret: checkedApart,
  ...signatureHeaderRules,
  algorithm: oneOf('sha256', 'sha1', 'sha512'),
  separator: text,
}

/**
 * Accepts deliveries whose bytes are signed with an HMAC.
 * @throws WebhookError `invalid_option` for an unusable secret or options that contradict each other.
 */
export function hmacSignature(options: HmacSignatureOptions): Verifier {
  checkOptions(owner, options, rules)
  const { secret, algorithm = 'sha256', encoding = 'hex' } = options
  const makeKey = (text: string) => hmacKey(algorithm, encoder.encode(text))
  const check = checkWith(owner, secret, checkSignatures(encoding, makeKey))
  return signatureHeaderVerifier(owner, options, check)
}
