import { hash } from 'node:crypto'

/**
 * Hashes a key for the database: half a SHA-256, as a uuid. Its JSON is hashed, since all lone surrogates are equal in
 * UTF-8.
 */
export const hashKey = (key: string): string => hash('sha256', JSON.stringify(key), 'hex').slice(0, 32)

/**
 * Hashes a media item id to a 64-bit integer, as text. If two media items share a hash, their events are handled in one
 * order. This does no harm.
 */
export const hashMedia = (mediaId: string): string =>
  BigInt.asIntN(64, BigInt(`0x${hash('sha256', JSON.stringify(mediaId), 'hex').slice(0, 16)}`)).toString()
