import { publicKey as importKey, type PublicKey, verifySignature } from '#crypto'
import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions, oneOf } from '../internal/check-options.ts'
import { decodePem, isSpki, spkiOfEd25519 } from '../internal/crypto/der.ts'
import { decodeBase64, decodeHex, type PublicKeyAlgorithm } from '../internal/crypto/encoding.ts'
import { checkWith, type GetSecrets, type Secrets } from './secrets.ts'
import { type SignatureHeaderOptions, signatureHeaderRules, signatureHeaderVerifier } from './signature-header.ts'
import type { Signed } from './signatures.ts'
import { notVerified, type Verification, type Verifier } from './verifier.ts'

/** The options of `publicKeySignature`. */
export interface PublicKeySignatureOptions extends SignatureHeaderOptions {
  /**
   * The sender's public key, or several while the sender changes it: PEM (`BEGIN PUBLIC KEY`), the same in base64
   * without its first and last line, or the 32 bytes of an Ed25519 key in hex.
   */
  readonly publicKey: Secrets | GetSecrets
  /** @defaultValue 'ed25519' */
  readonly algorithm?: PublicKeyAlgorithm
}

const owner = 'publicKeySignature'

/**
 * Accepts deliveries whose bytes are signed with the sender's private key, such as those of Discord and SendGrid.
 * Without `node:crypto` an invalid key of the right form is found only by a delivery, which it rejects.
 * @throws WebhookError `invalid_option` for an unusable key or options that contradict each other.
 */
export function publicKeySignature(options: PublicKeySignatureOptions): Verifier {
  checkOptions(owner, options, {
    publicKey: checkedApart,
    ...signatureHeaderRules,
    algorithm: oneOf('ed25519', 'rsa-sha256', 'ecdsa-sha256'),
  })
  const { publicKey, header, algorithm = 'ed25519', encoding = 'hex' } = options
  const check = checkWith(owner, publicKey, (secrets) => {
    const keys = secrets.map(({ text, verification }) => ({ key: readKey(algorithm, text), verification }))
    return async ({ signatures: [text = ''], prefix, body }: Signed): Promise<Verification> => {
      const signature = encoding === 'hex' ? decodeHex(text) : decodeBase64(text)
      if (signature === undefined) return notVerified(`header ${header} is malformed`)
      for (const { key, verification } of keys)
        if (await verifySignature(key, prefix, body, signature)) return verification
      return notVerified('no public key matches the signature')
    }
  })

  return signatureHeaderVerifier(owner, options, check)
}

function readKey(algorithm: PublicKeyAlgorithm, text: string): PublicKey {
  const isRaw = algorithm === 'ed25519' && /^[0-9a-f]{64}$/i.test(text)
  const spki = isRaw ? spkiOfEd25519(text) : (decodePem('PUBLIC KEY', text) ?? decodeBase64(text))
  try {
    if (spki !== undefined && isSpki(algorithm, spki)) return importKey(algorithm, spki)
  } catch {
    // Reported below, without the key.
  }
  const forms = `PEM (BEGIN PUBLIC KEY) or its base64${algorithm === 'ed25519' ? ', or 32 bytes in hex' : ''}`
  throw new WebhookError('invalid_option', `${owner}: the public key must be one for ${algorithm}: ${forms}`)
}
