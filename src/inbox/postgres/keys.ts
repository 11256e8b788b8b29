import { hash } from 'node:crypto'

/** Hashes a key to half a SHA-256, as a uuid. Hashes its JSON, since all lone surrogates are equal in UTF-8. */
export const hashKey = (key: string): string => hash('sha256', JSON.stringify(key), 'hex').slice(0, 32)

/** Hashes a media item id to a 64-bit integer, as text. A collision is harmless: both media items share one order. */
export const hashMedia = (mediaId: string): string =>
  BigInt.asIntN(64, BigInt(`0x${hash('sha256', JSON.stringify(mediaId), 'hex').slice(0, 16)}`)).toString()
