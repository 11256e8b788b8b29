import { encodeBytes, type HashAlgorithm, type SignatureEncoding, toHex } from './encoding.ts'

// `#crypto` on runtimes without node:crypto. Its counterpart is node.ts; both export the same functions.

const webNames = { sha1: 'SHA-1', sha256: 'SHA-256', sha512: 'SHA-512' } as const

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** A secret prepared for {@link hmac}. It is imported on its first use, since Workers forbid that at start-up. */
export type HmacKey = () => Promise<CryptoKey>

export function hmacKey(algorithm: HashAlgorithm, secret: Uint8Array<ArrayBuffer>): HmacKey {
  let imported: Promise<CryptoKey> | undefined
  return () => {
    imported ??= crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: webNames[algorithm] }, false, ['sign'])
    return imported
  }
}

/** Computes the HMAC of `prefix`, in UTF-8, followed by `content`. */
export async function hmac(
  key: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): Promise<string> {
  const head = new TextEncoder().encode(prefix)
  const signed = new Uint8Array(head.byteLength + content.byteLength)
  signed.set(head)
  signed.set(content, head.byteLength)
  return encodeBytes(new Uint8Array(await crypto.subtle.sign('HMAC', await key(), signed)), encoding)
}

/** Computes the SHA-256 of bytes, or of a string in UTF-8, in hex. */
export async function sha256(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

/**
 * Compares two strings in a time that depends on the length of `expected` alone: every code unit is compared, even
 * after a difference.
 */
export function equalText(text: string, expected: string): boolean {
  let difference = text.length ^ expected.length
  for (let i = 0; i < expected.length; i++) difference |= text.charCodeAt(i) ^ expected.charCodeAt(i)
  return difference === 0
}
