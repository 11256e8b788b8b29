import { sha256 } from '#crypto'
import type { ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { type MaybePromise, whenever } from '../internal/maybe-promise.ts'

/** Longest key kept verbatim (UTF-16 code units). Stores need no limit of their own. */
const maxKeyLength = 256

/**
 * Checks a key from a verifier, header, sender or `eventKey`, and hashes it if it is too long.
 * @throws WebhookError `internal` unless it is a non-empty string
 */
export function givenKey(key: string): MaybePromise<string> {
  if (typeof key !== 'string' || key === '') {
    throw new WebhookError('internal', 'the receiver failed', { cause: 'eventKey must return a non-empty string' })
  }
  return bounded(key)
}

/** Scopes a key to its principal. Tenants can send equal events, and one tenant could copy another's ids. */
export const keyOfPrincipal = (principal: string, key: MaybePromise<string>): MaybePromise<string> =>
  whenever(key, (each) => bounded(JSON.stringify([principal, each])))

/** Hashes the raw bytes: different JSON can parse to the same number. */
export const keyOfBody = (body: Uint8Array | ParsedBody): MaybePromise<string> =>
  hashed(ArrayBuffer.isView(body) ? body : JSON.stringify(body.parsed))

export const bounded = (key: string): MaybePromise<string> =>
  key.length <= maxKeyLength ? key : hashed(JSON.stringify(key))

const hashed = (content: string | Uint8Array): MaybePromise<string> =>
  whenever(sha256(content), (digest) => `sha256:${digest}`)
