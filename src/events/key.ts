import { sha256 } from '#crypto'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { canonicalJson, type JsonObject } from './json.ts'
import type { WireEvent } from './wire.ts'

/** The longest key that is kept as it is, in UTF-16 code units; stores should not have to bound it themselves. */
const maxKeyLength = 256

/**
 * The event key: equal for two deliveries of one event, which carry no id. Every retry repeats `emitted_at` to the
 * nanosecond, so its raw text is part of the key; without it the whole payload is all there is to tell events apart.
 */
export function payloadKey(event: WireEvent, payload: JsonObject): MaybePromise<string> {
  const { type, mediaId, userId = '', emittedAt, qualities = '', status = '' } = event
  if (emittedAt === undefined) return hashed(canonicalJson(payload))
  // JSON makes the list unambiguous and writes lone surrogates as escapes, which keeps distinct keys distinct in UTF-8.
  return bounded(JSON.stringify([type, mediaId, userId, emittedAt, qualities, status]))
}

/**
 * A key that came from elsewhere: a verifier, a header or a function of the user's.
 * @throws WebhookError `internal` when it is no key
 */
export function givenKey(key: string): MaybePromise<string> {
  if (typeof key !== 'string' || key === '') {
    throw new WebhookError('internal', 'the receiver failed', { cause: 'eventKey has to return a non-empty string' })
  }
  return bounded(key)
}

const bounded = (key: string): MaybePromise<string> => (key.length <= maxKeyLength ? key : hashed(JSON.stringify(key)))

function hashed(text: string): MaybePromise<string> {
  const digest: MaybePromise<string> = sha256(text)
  return isPromise(digest) ? digest.then(hashText) : hashText(digest)
}

const hashText = (digest: string): string => `sha256:${digest}`
