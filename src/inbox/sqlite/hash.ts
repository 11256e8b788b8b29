import { hash } from 'node:crypto'

/** Hashes a content: half a SHA-256, 128 bits, enough that no two contents share one. */
export const shortHash = (content: string | Uint8Array): string => hash('sha256', content, 'base64url').slice(0, 22)

/** A time in a key, up to its seconds, as the receiver's own keys have one. */
const timeInKey = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/

/**
 * Hashes a key for the file. The hash of a key with a time begins with its seconds: the keys of a commit then share a few
 * pages of the index, which is a fifth of the CPU of an event, and more in a large file. 96 bits are left for the rest.
 */
export function hashKey(key: string): string {
  const time = timeInKey.exec(key)
  // JSON, since UTF-8 makes all lone surrogates alike.
  const plain = shortHash(JSON.stringify(key))
  if (time === null) return plain
  const seconds = Date.parse(`${time[0]}Z`) / 1_000
  // A year before 1970 or a 13th month, for example, is no time to sort by.
  return seconds >= 0 ? `~${seconds.toString(36).padStart(7, '0')}${plain.slice(0, 16)}` : plain
}
