/** The hash of an HMAC. */
export type HashAlgorithm = 'sha1' | 'sha256' | 'sha512'

/** How a signature is written in a header. */
export type SignatureEncoding = 'hex' | 'base64'

/** How a private key signs: RSA with PKCS#1 v1.5 padding, ECDSA on P-256 with signatures in DER. */
export type PublicKeyAlgorithm = 'ed25519' | 'rsa-sha256' | 'ecdsa-sha256'

/** RSA with SHA-1 is only for Amazon SNS. */
export type VerifiableAlgorithm = PublicKeyAlgorithm | 'rsa-sha1'

export function encodeBytes(bytes: Uint8Array, encoding: SignatureEncoding): string {
  return encoding === 'base64' ? btoa(String.fromCharCode(...bytes)) : toHex(bytes)
}

/** Lower-case hex. */
export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

/** Decodes padded base64 in the standard alphabet. `undefined` if malformed or empty. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/.test(text)) return undefined
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** Decodes hex. `undefined` if malformed or empty. */
export function decodeHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^(?:[0-9a-f]{2})+$/i.test(text)) return undefined
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16))
}
