import { WebhookError } from '../errors.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { suggestion } from '../internal/suggestion.ts'
import type { DeliveryHeaders } from '../receiver/delivery.ts'
import type { BodyFormat } from './body.ts'
import type { HandshakeOptions, Handshakes } from './challenge.ts'
import type { EventFields } from './event.ts'
import type { acceptList } from './event-list.ts'
import type { JsonObject } from './json.ts'
import type { MediaEvent } from './media-service/catalogue.ts'

// The seam between the receiver and a service. Nothing outside this folder knows a payload's fields.

/** What a sender reads from a payload. Each sender adds its own fields. */
export interface Reading {
  readonly type: string
  /** The sender's event id. Becomes the key. */
  readonly id?: string | undefined
}

/** One of the events in a delivery that has a list of them. */
export interface ListedReading {
  readonly reading: Reading
  /** The part of the payload that is this event's. */
  readonly payload: JsonObject
}

export type Origin = Pick<EventFields, 'source' | 'principal'>

/** A service that sends deliveries: its event types, its payloads, its keys. */
export interface AnySender {
  readonly name: string
  /** Types you can register handlers for. Any other type reaches only `onAny`. */
  readonly types: readonly string[]
  /** Headers that `read` has asked for. Unreadable deliveries keep them. */
  readonly headers: Iterable<string>
  readonly body: BodyFormat
  /** Absent if the service asks for no handshake. */
  handshakes?(options: HandshakeOptions): Handshakes
  /**
   * Reads the event of a payload, or a list of them. `undefined` if there is nothing to handle.
   * @param text the body
   * @throws WebhookError `malformed`, naming the field but not its value
   */
  read(payload: JsonObject, headers: DeliveryHeaders, text: string): Reading | readonly ListedReading[] | undefined
  /** Reads the result of a look-up. @throws WebhookError `malformed` */
  readLookup(found: object): { readonly reading: Reading; readonly payload: JsonObject }
  /** Accepts a list of events. Absent if `read` never returns one, nor `undefined`. */
  readonly acceptList?: typeof acceptList
  /** A warning about events without an id, such as this one, that only their bodies tell apart, though nobody said so. */
  alikeWarning?(reading: Reading): string | undefined
  /** Derives the key of an event without an id. */
  makeKey(reading: Reading, body: Uint8Array): MaybePromise<string>
  /** Builds the event in its stored form: JSON, except for `emittedAt`. */
  toEvent(reading: Reading, key: string, origin: Origin, payload: JsonObject): MediaEvent
  /**
   * Converts a stored event for handlers. Absent if they get it as stored.
   * @throws WebhookError `malformed` if the data fails its schema
   */
  typed?(event: MediaEvent): MediaEvent
  /** Fields that must be equal in two deliveries of one event, except `varying` ones. */
  comparable(event: MediaEvent): JsonObject
  /** Names of compared fields that a redelivery may change. */
  readonly varying: readonly string[]
  /** Names of the fields of a flat payload that are in the derived key, or vary. */
  readonly keyed: readonly string[]
}

export const typedBy = ({ typed }: AnySender, event: MediaEvent): MediaEvent => typed?.(event) ?? event

/** @throws WebhookError `invalid_option` for an empty list or an unknown type */
export function checkTypes(owner: string, types: readonly string[], { types: known }: AnySender, hint = ''): void {
  if (types.length === 0) throw new WebhookError('invalid_option', `${owner}: give at least one event type`)
  for (const type of types.filter((each) => !known.includes(each)).map(String))
    throw new WebhookError('invalid_option', `${owner}: unknown event type ${type}${hint}${suggestion(type, known)}`)
}
