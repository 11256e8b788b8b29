import { hash } from 'node:crypto'

/** Hashes a key for the file. Its JSON is hashed, since lone surrogates are all alike in UTF-8. */
export const hashKey = (key: string): string => shortHash(JSON.stringify(key))

/** Half a SHA-256, 128 bits: enough that no two contents share one. */
export const shortHash = (content: string | Uint8Array): string => hash('sha256', content, 'base64url').slice(0, 22)
