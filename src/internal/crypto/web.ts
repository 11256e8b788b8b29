import { crypto } from '../realm.ts'
import { encoder } from '../utf8.ts'
import { encodeBytes, type HashAlgorithm, type SignatureEncoding, toHex } from './encoding.ts'

// `#crypto` on runtimes without node:crypto, with the same exports as node.ts.

const webNames = { sha1: 'SHA-1', sha256: 'SHA-256', sha512: 'SHA-512' } as const

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** A secret prepared for {@link hmac}. Imported lazily, because Workers forbid that at start-up. */
export type HmacKey = () => Promise<CryptoKey>

export function hmacKey(algorithm: HashAlgorithm, secret: Uint8Array<ArrayBuffer>): HmacKey {
  let imported: Promise<CryptoKey> | undefined
  return () => {
    imported ??= crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: webNames[algorithm] }, false, ['sign'])
    return imported
  }
}

export async function hmac(
  key: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): Promise<string> {
  const head = encoder.encode(prefix)
  const signed = new Uint8Array(head.byteLength + content.byteLength)
  signed.set(head)
  signed.set(content, head.byteLength)
  return encodeBytes(new Uint8Array(await crypto.subtle.sign('HMAC', await key(), signed)), encoding)
}

export async function sha256(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === 'string' ? encoder.encode(content) : content
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

/** Takes time that depends on `expected.length` only: compares every code unit, even after a difference. */
export function equalText(text: string, expected: string): boolean {
  let difference = text.length ^ expected.length
  for (let i = 0; i < expected.length; i++) difference |= text.charCodeAt(i) ^ expected.charCodeAt(i)
  return difference === 0
}
