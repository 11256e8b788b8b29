import { hash } from 'node:crypto'

/** Half a SHA-256: 128 bits, enough against collisions. */
export const shortHash = (content: string | Uint8Array): string => hash('sha256', content, 'base64url').slice(0, 22)

const timeInKey = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/

/**
 * Hashes a key. If the key has a time, its seconds come first: the keys of a commit then share a few index pages. Saves
 * a fifth of an event's CPU, more in a large file. 96 bits remain for the rest.
 */
export function hashKey(key: string): string {
  const time = timeInKey.exec(key)
  // JSON, because UTF-8 would merge all lone surrogates.
  const plain = shortHash(JSON.stringify(key))
  if (time === null) return plain
  const seconds = Date.parse(`${time[0]}Z`) / 1_000
  // Not a time to sort by: before 1970, or a 13th month.
  return seconds >= 0 ? `~${seconds.toString(36).padStart(7, '0')}${plain.slice(0, 16)}` : plain
}
