import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { HashAlgorithm, SignatureEncoding } from './encoding.ts'

// `#crypto` on Node. Its counterpart is crypto-web.ts; both export the same functions.

/** A secret prepared for {@link hmac}. */
export interface HmacKey {
  readonly algorithm: HashAlgorithm
  readonly secret: Uint8Array
}

export const hmacKey = (algorithm: HashAlgorithm, secret: Uint8Array): HmacKey => ({ algorithm, secret })

/** Computes the HMAC of `prefix`, in UTF-8, followed by `content`. */
export function hmac(
  { algorithm, secret }: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): string {
  return createHmac(algorithm, secret).update(prefix).update(content).digest(encoding)
}

/** Computes the SHA-256 of bytes, or of a string in UTF-8, in hex. */
export const sha256 = (content: string | Uint8Array): string => hash('sha256', content, 'hex')

/** Compares two strings in a time that does not depend on where they differ. Their lengths are no secret. */
export function equalText(text: string, expected: string): boolean {
  // UTF-16, since in UTF-8 all lone surrogates are the same three bytes.
  const [bytes, expectedBytes] = [Buffer.from(text, 'utf16le'), Buffer.from(expected, 'utf16le')]
  return bytes.byteLength === expectedBytes.byteLength && timingSafeEqual(bytes, expectedBytes)
}
