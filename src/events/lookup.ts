import { WebhookError } from '../errors.ts'
import { isPlainObject } from '../internal/check-options.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { encoder } from '../internal/utf8.ts'
import { deepFreeze } from './json.ts'
import { noHeaders } from './kept-input.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { makeEvent, type Parsing } from './parse.ts'

/** What became of a look-up: stored, seen before, or ignored because no handler or expectation wants its type. */
export type LookupOutcome = 'accepted' | 'duplicate' | 'ignored'

/**
 * Builds the event that a look-up found, as if it had been delivered.
 * @throws WebhookError `malformed`, naming the field but not its value; `internal` if `eventKey` fails
 */
export function parseLookup(parsing: Parsing, found: object): MaybePromise<MediaEvent> {
  // A class's getters would be left out.
  if (!isPlainObject(found ?? {})) throw wrongLookup('expected an object such as { type, mediaId }')
  const { principal: named, ...fields } = (found ?? {}) as { readonly principal?: unknown }
  const principal = lookedUpText('principal', named)
  const { reading, payload } = parsing.sender.readLookup(fields)
  const body = encoder.encode(JSON.stringify(payload))
  const delivery = { method: 'POST', url: '/', headers: noHeaders, body }
  deepFreeze(payload)
  return makeEvent(parsing, { reading, payload, body, delivery, vouched: { principal }, source: 'lookup' })
}

/** Returns a string field, or `''` if it is absent. */
export function lookedUpText(field: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw wrongLookup(`field ${field}: expected a string`)
  return value
}

export const wrongLookup = (problem: string): WebhookError => new WebhookError('malformed', `accept: ${problem}`)
