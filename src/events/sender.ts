import type { DeliveryHeaders, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { EventFields } from './event.ts'
import type { JsonObject } from './json.ts'
import type { MediaEvent } from './media-service/catalogue.ts'

// The seam between a receiver and the service that sends to it. Nothing outside this folder knows a payload's fields.

/** What a sender has read from a payload. Each sender adds fields of its own. */
export interface Reading {
  readonly type: string
  /** The sender's own id of the event, which becomes its key. */
  readonly id?: string | undefined
}

/** Where an event comes from. */
export type Origin = Pick<EventFields, 'source' | 'principal'>

/** A service that sends deliveries: its event types, how its payloads are read, and what makes their keys. */
export interface AnySender {
  /** Its name in logs and error messages. */
  readonly name: string
  /** The types that handlers can be registered for. An event of any other type reaches only `onAny`. */
  readonly types: readonly string[]
  /** Names of the headers that `read` has asked for. They are kept with an unreadable delivery. */
  readonly headers: Iterable<string>
  /** @throws WebhookError `malformed`, naming the field and never its value */
  read(payload: JsonObject, headers: DeliveryHeaders): Reading
  /** Reads what a look-up found. @throws WebhookError `malformed` */
  readLookup(found: object): { readonly reading: Reading; readonly payload: JsonObject }
  /** The key of an event without an id. */
  keyOf(reading: Reading, body: Uint8Array | ParsedBody): MaybePromise<string>
  /** Makes the event as inboxes store it: JSON, except for `emittedAt`. */
  toEvent(reading: Reading, key: string, origin: Origin, payload: JsonObject): MediaEvent
  /**
   * Returns the event as handlers get it. By default they get it as it is stored.
   * @throws WebhookError `malformed` if its data is not as its schema expects
   */
  typed?(event: MediaEvent): MediaEvent
  /** The fields in which two deliveries of one event must agree. */
  comparable(event: MediaEvent): JsonObject
}

/** Returns an event as handlers get it. */
export const typedBy = ({ typed }: AnySender, event: MediaEvent): MediaEvent => typed?.(event) ?? event

/** @throws WebhookError `invalid_option` for an empty list, or a type that the sender does not have */
export function checkTypes(owner: string, types: readonly string[], { types: known }: AnySender, hint = ''): void {
  if (types.length === 0) throw new WebhookError('invalid_option', `${owner}: give at least one event type`)
  for (const type of types)
    if (!known.includes(type)) throw new WebhookError('invalid_option', `${owner}: unknown event type ${type}${hint}`)
}
