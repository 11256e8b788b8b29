import { WebhookError } from '../../errors.ts'

/**
 * The event types of the service, in the order in which they occur in the life of a media item. An event of any other type
 * reaches only `onAny`. Everything else that depends on the types is derived from this list, or is a table with an entry
 * for each type, which the compiler checks.
 */
export const eventTypes = [
  'file.received',
  'encoding.started',
  'partial.finished',
  'encoding.finished',
  'encoding.failed',
] as const

/** A type that handlers can be registered for. */
export type EventType = (typeof eventTypes)[number]

/** @throws WebhookError `invalid_option` for an empty list, or a type that is not in the catalogue */
export function checkTypes(owner: string, types: readonly EventType[], hint = ''): void {
  if (types.length === 0) throw new WebhookError('invalid_option', `${owner}: give at least one event type`)
  for (const type of types)
    if (!eventTypes.includes(type))
      throw new WebhookError('invalid_option', `${owner}: unknown event type ${type}${hint}`)
}

/** The name of a type in the service's API, where a webhook has a flag for each type. An envelope may also use it. */
export type FlagName<Type extends EventType = EventType> = Type extends `${infer Subject}.${infer Verb}`
  ? `${Subject}_${Verb}`
  : never

/** Returns the name of a type in the service's API: `file_received` for `file.received`. */
export const flagName = <Type extends EventType>(type: Type) => type.replace('.', '_') as FlagName<Type>

/** A string type that autocompletes the known words and accepts any other string. */
type OpenEnum<Known extends string> = Known | (string & {})

/** The state of the media item. The first three are documented; the others were observed in the running service. */
export type MediaStatus = OpenEnum<'transcoding' | 'done' | 'fail' | 'new' | 'transcribing'>

/** The kind of media item. `video` and `live-stream` are documented; `live_stream` and `audio` were observed. */
export type MediaType = OpenEnum<'video' | 'live-stream' | 'live_stream' | 'audio'>

interface EventFields {
  /** Equal for two deliveries of one event. Use it to make effects idempotent. */
  readonly key: string
  /** The wire format of its delivery: the service's flat payload, or the envelope of the SDK's sample receiver. */
  readonly format: 'flat' | 'envelope'
  /** `lookup` if no delivery brought it: `receiver.accept` took it from a look-up of yours. */
  readonly source: 'delivery' | 'lookup'
  /** The time at which the service emitted it, to the millisecond. The exact text is in `payload`. */
  readonly emittedAt?: Date | undefined
  readonly mediaId: string
  readonly mediaType?: MediaType | undefined
  /** Quality names as sent, such as `360p`; empty when the sender named none. */
  readonly qualities: readonly string[]
  readonly title?: string | undefined
  readonly status?: MediaStatus | undefined
  readonly userId?: string | undefined
  /** The name that the verifier gives the one that sent it, such as a tenant. It is never read from the payload. */
  readonly principal?: string | undefined
  /** `true` for the service's test delivery (`webhook.check`), whose media id is the nil UUID. */
  readonly test: boolean
  /**
   * The fields that were sent as another JSON type than expected, such as `['qualities']`, with `data.` before the name
   * in an envelope. It is usually empty. A field whose meaning is obvious was read. Any other is `undefined`. The JSON
   * that was sent is in `payload`.
   */
  readonly issues: readonly string[]
  /** The JSON object as sent, unknown fields included. */
  readonly payload: Readonly<Record<string, unknown>>
}

/** A new file has been uploaded and received. */
export interface FileReceivedEvent extends EventFields {
  readonly type: 'file.received'
}

/** Encoding of a file began. */
export interface EncodingStartedEvent extends EventFields {
  readonly type: 'encoding.started'
}

/** Encoding of one quality of a file has completed. */
export interface PartialFinishedEvent extends EventFields {
  readonly type: 'partial.finished'
  /** The quality that was encoded; `undefined` when the sender named none. */
  readonly quality: string | undefined
}

/** Encoding of a file has completed. */
export interface EncodingFinishedEvent extends EventFields {
  readonly type: 'encoding.finished'
}

/** Encoding of a file has failed. */
export interface EncodingFailedEvent extends EventFields {
  readonly type: 'encoding.failed'
}

/**
 * A type outside the catalogue: a string that no literal is equal to, so that `event.type === 'partial.finished'` rules
 * it out. It is declared as an enum only because the compiler narrows no other kind of nominal string.
 */
export declare enum UnknownEventType {
  outsideTheCatalogue = 'a type outside the catalogue',
}

/** An event of a type this version does not know. */
export interface UnknownEvent extends EventFields {
  readonly type: UnknownEventType
}

interface EventsByType {
  readonly 'file.received': FileReceivedEvent
  readonly 'encoding.started': EncodingStartedEvent
  readonly 'partial.finished': PartialFinishedEvent
  readonly 'encoding.finished': EncodingFinishedEvent
  readonly 'encoding.failed': EncodingFailedEvent
}

/** An event of one of the known types. */
export type KnownEvent = EventsByType[EventType]

/** An event, parsed and typed: the same for both wire formats. */
export type MediaEvent = KnownEvent | UnknownEvent

/** The event of a type: `EventOf<'partial.finished'>` has `quality`. */
export type EventOf<Type extends EventType> = EventsByType[Type]
