import { hash, timingSafeEqual } from 'node:crypto'
import type { HashAlgorithm, SignatureEncoding } from './encoding.ts'

// `#crypto` on Node. Its counterpart is crypto-web.ts; both export the same functions.

// HMAC is written out (RFC 2104) over one-shot hashes. createHmac makes a native object for each signature: with its
// garbage that is 5 % of the CPU time of a delivery over node:http. The tests compare the two.

const blockBytes = { sha1: 64, sha256: 64, sha512: 128 } as const

/** A secret prepared for {@link hmac}: its two pads, each a block long. */
export interface HmacKey {
  readonly algorithm: HashAlgorithm
  readonly inner: Uint8Array
  readonly outer: Uint8Array
}

export function hmacKey(algorithm: HashAlgorithm, secret: Uint8Array): HmacKey {
  const block = Buffer.alloc(blockBytes[algorithm])
  block.set(secret.byteLength > block.byteLength ? hash(algorithm, secret, 'buffer') : secret)
  return { algorithm, inner: block.map((byte) => byte ^ 0x36), outer: block.map((byte) => byte ^ 0x5c) }
}

/** Computes the HMAC of `prefix`, in UTF-8, followed by `content`. */
export function hmac(
  { algorithm, inner, outer }: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): string {
  const prefixBytes = Buffer.byteLength(prefix)
  const message = Buffer.allocUnsafe(inner.byteLength + prefixBytes + content.byteLength)
  message.set(inner)
  message.write(prefix, inner.byteLength)
  message.set(content, inner.byteLength + prefixBytes)
  // In 'binary', which is Latin-1, each byte is a character: the cheapest form of a digest.
  const digest = hash(algorithm, message, 'binary')
  const outerMessage = Buffer.allocUnsafe(outer.byteLength + digest.length)
  outerMessage.set(outer)
  outerMessage.write(digest, outer.byteLength, 'latin1')
  return hash(algorithm, outerMessage, encoding)
}

/** Computes the SHA-256 of bytes, or of a string in UTF-8, in hex. */
export const sha256 = (content: string | Uint8Array): string => hash('sha256', content, 'hex')

/** Compares two strings in a time that does not depend on where they differ. Their lengths are no secret. */
export function equalText(text: string, expected: string): boolean {
  // UTF-16, since in UTF-8 all lone surrogates are the same three bytes.
  const [bytes, expectedBytes] = [Buffer.from(text, 'utf16le'), Buffer.from(expected, 'utf16le')]
  return bytes.byteLength === expectedBytes.byteLength && timingSafeEqual(bytes, expectedBytes)
}
