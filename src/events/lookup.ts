import { WebhookError } from '../errors.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { makeEvent, noHeaders, type Parsing } from './parse.ts'

/**
 * The outcome of a look-up: the event is in the inbox, was accepted before, or is of a type that neither a handler nor an
 * expectation is about.
 */
export type LookupOutcome = 'accepted' | 'duplicate' | 'ignored'

/**
 * Makes the event of a look-up, as if its sender had sent it.
 * @throws WebhookError `malformed`, naming the field and never its value; `internal` if the function of the event key fails
 */
export function parseLookup(parsing: Parsing, found: object): MaybePromise<MediaEvent> {
  const { principal: named, ...fields } = (found ?? {}) as { readonly principal?: unknown }
  const principal = lookedUpText('principal', named)
  const { reading, payload } = parsing.sender.readLookup(fields)
  const body = { parsed: payload }
  const delivery = { method: 'POST', url: '/', headers: noHeaders, body }
  return makeEvent(parsing, reading, payload, body, delivery, { principal }, 'lookup')
}

/** Reads a text of a look-up; `''` if it is absent. */
export function lookedUpText(field: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw wrongLookup(`field ${field}: expected a string`)
  return value
}

export const wrongLookup = (problem: string): WebhookError => new WebhookError('malformed', `accept: ${problem}`)
