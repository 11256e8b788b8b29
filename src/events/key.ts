import { sha256 } from '#crypto'
import type { ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { type MaybePromise, whenever } from '../internal/maybe-promise.ts'

/** Maximum length of a key that is kept as it is, in UTF-16 code units, so that stores need no limit of their own. */
const maxKeyLength = 256

/**
 * Checks and shortens a key that a verifier, a header, a sender or the user's function gave.
 * @throws WebhookError `internal` when it is not a non-empty string
 */
export function givenKey(key: string): MaybePromise<string> {
  if (typeof key !== 'string' || key === '') {
    throw new WebhookError('internal', 'the receiver failed', { cause: 'eventKey has to return a non-empty string' })
  }
  return bounded(key)
}

/** Two tenants can send the same event, and one could send the id of another's event. They must not share a key. */
export const keyOfPrincipal = (principal: string, key: MaybePromise<string>): MaybePromise<string> =>
  whenever(key, (each) => bounded(JSON.stringify([principal, each])))

/** Hashes the body's own bytes: different JSON can parse to the same number. */
export const keyOfBody = (body: Uint8Array | ParsedBody): MaybePromise<string> =>
  hashed(ArrayBuffer.isView(body) ? body : JSON.stringify(body.parsed))

export const bounded = (key: string): MaybePromise<string> =>
  key.length <= maxKeyLength ? key : hashed(JSON.stringify(key))

const hashed = (content: string | Uint8Array): MaybePromise<string> =>
  whenever(sha256(content), (digest) => `sha256:${digest}`)
