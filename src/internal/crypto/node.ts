import { createPublicKey, hash, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { HashAlgorithm, SignatureEncoding, VerifiableAlgorithm } from './encoding.ts'

// `#crypto` on Node, with the same exports as web.ts.

// HMAC (RFC 2104) over one-shot hashes: createHmac's native object per signature is 5 % of a delivery's CPU.

const blockBytes = { sha1: 64, sha256: 64, sha512: 128 } as const
const digestBytes = { sha1: 20, sha256: 32, sha512: 64 } as const

/** Room for a message behind the inner pad (bytes). Few are longer. */
const messageRoom = 4_096

/** A prepared secret: two one-block pads, each followed by room for what is hashed. Reused, faster than new buffers. */
export interface HmacKey {
  readonly algorithm: HashAlgorithm
  readonly inner: Buffer
  readonly outer: Buffer
}

export function hmacKey(algorithm: HashAlgorithm, secret: Uint8Array): HmacKey {
  const block = Buffer.alloc(blockBytes[algorithm])
  block.set(secret.byteLength > block.byteLength ? hash(algorithm, secret, 'buffer') : secret)
  const padded = (pad: number, room: number) => Buffer.concat([block.map((byte) => byte ^ pad), Buffer.alloc(room)])
  return { algorithm, inner: padded(0x36, messageRoom), outer: padded(0x5c, digestBytes[algorithm]) }
}

/** HMAC of `prefix` (as UTF-8) followed by `content`. */
export function hmac(
  { algorithm, inner, outer }: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): string {
  const block = blockBytes[algorithm]
  const start = block + Buffer.byteLength(prefix)
  const size = start + content.byteLength
  const message = size <= inner.byteLength ? inner : Buffer.concat([inner.subarray(0, block)], size)
  if (start > block) message.write(prefix, block)
  message.set(content, start)
  // 'binary' (Latin-1) is the cheapest form of a digest: one character per byte.
  const digest = hash(algorithm, message.subarray(0, size), 'binary')
  outer.write(digest, block, 'latin1')
  return hash(algorithm, outer, encoding)
}

/** SHA-256 in hex. Strings are hashed as UTF-8. */
export const sha256 = (content: string | Uint8Array): string => hash('sha256', content, 'hex')

/** Constant-time comparison. Lengths are not secret. */
export function equalText(text: string, expected: string): boolean {
  // UTF-16, because UTF-8 maps all lone surrogates to the same bytes.
  const [bytes, expectedBytes] = [Buffer.from(text, 'utf16le'), Buffer.from(expected, 'utf16le')]
  return bytes.byteLength === expectedBytes.byteLength && timingSafeEqual(bytes, expectedBytes)
}

const signedHashes = { ed25519: null, 'rsa-sha1': 'sha1', 'rsa-sha256': 'sha256', 'ecdsa-sha256': 'sha256' } as const

/** A public key prepared for {@link verifySignature}. */
export interface PublicKey {
  readonly algorithm: VerifiableAlgorithm
  readonly key: KeyObject
}

/** Throws for bytes that are no key. Check first that they have the form of one, with `isSpki`. */
export function publicKey(algorithm: VerifiableAlgorithm, spki: Uint8Array): PublicKey {
  return { algorithm, key: createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }) }
}

/** Returns whether `prefix` (as UTF-8) followed by `content` was signed with the private key. */
export function verifySignature(
  { algorithm, key }: PublicKey,
  prefix: string,
  content: Uint8Array,
  signature: Uint8Array,
): boolean {
  // WebCrypto would warn that Ed25519 is experimental in Node 20.
  return verify(signedHashes[algorithm], Buffer.concat([Buffer.from(prefix), content]), key, signature)
}
