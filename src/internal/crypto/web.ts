import { crypto } from '../realm.ts'
import { encoder } from '../utf8.ts'
import { readEcdsaSignature } from './der.ts'
import { encodeBytes, type HashAlgorithm, type SignatureEncoding, toHex, type VerifiableAlgorithm } from './encoding.ts'

// `#crypto` on runtimes without node:crypto, with the same exports as node.ts.

const webNames = { sha1: 'SHA-1', sha256: 'SHA-256', sha512: 'SHA-512' } as const

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** A secret prepared for {@link hmac}. */
export type HmacKey = () => Promise<CryptoKey>

export const hmacKey = (algorithm: HashAlgorithm, secret: Uint8Array<ArrayBuffer>): HmacKey =>
  lazily(() => crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: webNames[algorithm] }, false, ['sign']))

/** Workers forbid imports at start-up. */
function lazily(importKey: () => Promise<CryptoKey>): () => Promise<CryptoKey> {
  let imported: Promise<CryptoKey> | undefined
  return () => {
    imported ??= importKey()
    return imported
  }
}

export async function hmac(
  key: HmacKey,
  prefix: string,
  content: Uint8Array,
  encoding: SignatureEncoding,
): Promise<string> {
  const signature = await crypto.subtle.sign('HMAC', await key(), joined(prefix, content))
  return encodeBytes(new Uint8Array(signature), encoding)
}

function joined(prefix: string, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(prefix)
  const signed = new Uint8Array(head.byteLength + content.byteLength)
  signed.set(head)
  signed.set(content, head.byteLength)
  return signed
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

const signing = {
  ed25519: { name: 'Ed25519' },
  'rsa-sha1': { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' },
  'rsa-sha256': { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  'ecdsa-sha256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
} as const

/** A public key prepared for {@link verifySignature}. */
export interface PublicKey {
  readonly algorithm: VerifiableAlgorithm
  readonly key: () => Promise<CryptoKey>
}

export function publicKey(algorithm: VerifiableAlgorithm, spki: Uint8Array<ArrayBuffer>): PublicKey {
  const key = lazily(() => crypto.subtle.importKey('spki', spki, signing[algorithm], false, ['verify']))
  return { algorithm, key }
}

/** Rejects for bytes that are no key: only here are they imported. */
export async function verifySignature(
  { algorithm, key }: PublicKey,
  prefix: string,
  content: Uint8Array,
  signature: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const bytes = algorithm === 'ecdsa-sha256' ? readEcdsaSignature(signature) : signature
  return bytes !== undefined && crypto.subtle.verify(signing[algorithm], await key(), bytes, joined(prefix, content))
}
