import { hash } from 'node:crypto'

/**
 * Hashes a key for the database: half a SHA-256, as a uuid. Its JSON is hashed, since lone surrogates are all alike in
 * UTF-8.
 */
export const hashKey = (key: string): string => hash('sha256', JSON.stringify(key), 'hex').slice(0, 32)

/**
 * Hashes a media item id to a 64-bit integer, as text. Two media items that share one are handled in one order, which
 * does no harm.
 */
export const hashMedia = (mediaId: string): string =>
  BigInt.asIntN(64, BigInt(`0x${hash('sha256', JSON.stringify(mediaId), 'hex').slice(0, 16)}`)).toString()
