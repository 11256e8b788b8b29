import { sha256 } from '#crypto'
import { WebhookError } from '../errors.ts'
import { type MaybePromise, whenever } from '../internal/maybe-promise.ts'

/** Longest key kept verbatim (UTF-16 code units). Stores need no limit of their own. */
const maxKeyLength = 256

/** Prefixes of the keys that inboxes make, beside those of events. */
const inboxKeys = /^(?:given|handler|overdue|unreadable):/

/** Also those of keys derived from payloads. */
const derivedKeys = /^(?:\[|(?:given|handler|overdue|sha256|unreadable):)/

/**
 * Checks a key from your `eventKey`, and hashes it if it is too long. It can't become a key with a reserved prefix.
 * @throws WebhookError `internal` unless it is a non-empty string
 */
export function givenKey(key: string, reserved = inboxKeys): MaybePromise<string> {
  if (typeof key !== 'string' || key === '') {
    throw new WebhookError('internal', 'the receiver failed', { cause: 'eventKey must return a non-empty string' })
  }
  return bounded(reserved.test(key) ? `given:${key}` : key)
}

/** As {@link givenKey}, for an id from a verifier, header or sender. It can't become the key of an event without one. */
export const keyOfId = (id: string): MaybePromise<string> => givenKey(id, derivedKeys)

/** Scopes a key to its principal. Tenants can send equal events, and one tenant could copy another's ids. */
export const keyOfPrincipal = (principal: string, key: MaybePromise<string>): MaybePromise<string> =>
  whenever(key, (each) => bounded(JSON.stringify([principal, each])))

/** Hashes the raw bytes: different JSON can parse to the same number. */
export const keyOfBody = (body: Uint8Array): MaybePromise<string> => hashed(body)

export const bounded = (key: string): MaybePromise<string> =>
  key.length <= maxKeyLength ? key : hashed(JSON.stringify(key))

const hashed = (content: string | Uint8Array): MaybePromise<string> =>
  whenever(sha256(content), (digest) => `sha256:${digest}`)
