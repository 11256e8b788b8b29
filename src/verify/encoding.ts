/** How bytes are written in a header. */
export type SignatureEncoding = 'hex' | 'base64'

const hexText = /^(?:[0-9a-f]{2})+$/i
// Standard alphabet, padded: the only base64 that senders of signatures write, so that nothing else is guessed at.
const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** The bytes a text stands for; `undefined` when it is malformed or empty. */
export function decodeBytes(text: string, encoding: SignatureEncoding): Uint8Array<ArrayBuffer> | undefined {
  return encoding === 'hex' ? decodeHex(text) : decodeBase64(text)
}

export function encodeBytes(bytes: Uint8Array, encoding: SignatureEncoding): string {
  if (encoding === 'base64') return btoa(String.fromCharCode(...bytes))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function decodeHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!hexText.test(text)) return undefined
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = (hexDigit(text.charCodeAt(2 * i)) << 4) | hexDigit(text.charCodeAt(2 * i + 1))
  }
  return bytes
}

// '0'-'9' are 0x30-0x39; letters of either case have their value less 9 in the low four bits.
const hexDigit = (code: number): number => (code & 0x0f) + (code >= 0x41 ? 9 : 0)

export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text === '' || !base64Text.test(text)) return undefined
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}
