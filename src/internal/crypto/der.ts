import { decoder } from '../utf8.ts'
import { decodeBase64, decodeHex, toHex, type VerifiableAlgorithm } from './encoding.ts'

// Keys, certificates and ECDSA signatures in DER: Web Crypto reads no certificates, and wants ECDSA signatures as r || s.

type Bytes = Uint8Array<ArrayBuffer>

interface Value {
  readonly tag: number
  readonly content: Bytes
  /** Tag, length and content. */
  readonly whole: Bytes
}

/** Splits bytes into the values they consist of. Throws if they are malformed. */
function readValues(bytes: Bytes | undefined): readonly Value[] {
  const values: Value[] = []
  for (let at = 0; bytes !== undefined && at < bytes.byteLength; ) {
    const [tag = 0, first = 0] = bytes.subarray(at)
    // From 0x80 on it counts the bytes of the length, which follow it.
    const isLong = first >= 0x80
    const start = at + 2 + (isLong ? first - 0x80 : 0)
    const length = isLong ? bytes.subarray(at + 2, start).reduce((sum, byte) => sum * 256 + byte, 0) : first
    const end = start + length
    if (end > bytes.byteLength) throw new Error('malformed DER')
    values.push({ tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) })
    at = end
  }
  return values
}

/** Decodes the first block of a PEM with this label. `undefined` if there is none. */
export function decodePem(label: string, pem: string): Bytes | undefined {
  const base64 = new RegExp(`-----BEGIN ${label}-----([^-]+)-----END ${label}-----`).exec(pem)?.[1]
  return decodeBase64(base64?.replace(/\s/g, '') ?? '')
}

const rsa = /^30(?:81..|82.{4})300d06092a864886f70d0101010500/

/** How a SubjectPublicKeyInfo begins, in hex: its algorithm and, if that is fixed, its length. */
const forms: Readonly<Record<VerifiableAlgorithm, RegExp>> = {
  ed25519: /^302a300506032b6570032100.{64}$/,
  'rsa-sha1': rsa,
  'rsa-sha256': rsa,
  'ecdsa-sha256': /^3059301306072a8648ce3d020106082a8648ce3d03010703420004.{128}$/,
}

/** The SubjectPublicKeyInfo of an Ed25519 key of 32 bytes in hex. */
export const spkiOfEd25519 = (hex: string): Bytes | undefined => decodeHex(`302a300506032b6570032100${hex}`)

/** Whether bytes have the form of a SubjectPublicKeyInfo of that algorithm, whose key may still be invalid. */
export const isSpki = (algorithm: VerifiableAlgorithm, bytes: Bytes): boolean => forms[algorithm].test(toHex(bytes))

/** What is needed of an X.509 certificate. Times in ms since the epoch; `NaN` if malformed. */
export interface Certificate {
  readonly spki: Bytes
  readonly notBefore: number
  readonly notAfter: number
}

/** Reads a certificate in PEM. Verifies no signature of an issuer. Throws if it is malformed. */
export function readCertificate(pem: string): Certificate {
  const [certificate] = readValues(decodePem('CERTIFICATE', pem))
  const [toBeSigned] = readValues(certificate?.content)
  // The version is absent in version 1.
  const fields = readValues(toBeSigned?.content).filter(({ tag }) => tag !== 0xa0)
  const [_serial, _algorithm, _issuer, validity, _subject, spki] = fields
  const [notBefore, notAfter] = readValues(validity?.content)
  if (notBefore === undefined || notAfter === undefined || spki === undefined) throw new Error('not a certificate')
  return { spki: spki.whole, notBefore: readTime(notBefore), notAfter: readTime(notAfter) }
}

const utcTime = 0x17

function readTime({ tag, content }: Value): number {
  const text = decoder.decode(content)
  // UTCTime has two digits for the years 1950 to 2049.
  const full = tag === utcTime ? `${text < '5' ? 20 : 19}${text}` : text
  return Date.parse(full.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
}

/** Returns r || s of an ECDSA signature on P-256. `undefined` if it is malformed. */
export function readEcdsaSignature(der: Bytes): Bytes | undefined {
  try {
    const [sequence, ...others] = readValues(der)
    const numbers = readValues(sequence?.content)
    const tags = [sequence, ...numbers, ...others].map((value) => value?.tag)
    if (tags.join() !== '48,2,2') return undefined
    const hex = numbers.map(({ content }) => toHex(content).replace(/^00/, '').padStart(64, '0')).join('')
    return hex.length === 128 ? decodeHex(hex) : undefined
  } catch {
    return undefined
  }
}
