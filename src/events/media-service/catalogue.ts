import type { EventFields, UnknownEventType } from '../event.ts'

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

interface MediaFields extends EventFields {
  /** The wire format of its delivery: the service's flat payload, or the envelope of the SDK's sample receiver. */
  readonly format: 'flat' | 'envelope'
  readonly mediaType?: MediaType | undefined
  /** Quality names as sent, such as `360p`; empty when the sender named none. */
  readonly qualities: readonly string[]
  readonly title?: string | undefined
  readonly status?: MediaStatus | undefined
  readonly userId?: string | undefined
}

/** A new file has been uploaded and received. */
export interface FileReceivedEvent extends MediaFields {
  readonly type: 'file.received'
}

/** Encoding of a file began. */
export interface EncodingStartedEvent extends MediaFields {
  readonly type: 'encoding.started'
}

/** Encoding of one quality of a file has completed. */
export interface PartialFinishedEvent extends MediaFields {
  readonly type: 'partial.finished'
  /** The quality that was encoded; `undefined` when the sender named none. */
  readonly quality: string | undefined
}

/** Encoding of a file has completed. */
export interface EncodingFinishedEvent extends MediaFields {
  readonly type: 'encoding.finished'
}

/** Encoding of a file has failed. */
export interface EncodingFailedEvent extends MediaFields {
  readonly type: 'encoding.failed'
}

/** An event of a type this version does not know. */
export interface UnknownEvent extends MediaFields {
  readonly type: UnknownEventType
}

export interface EventsByType {
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
