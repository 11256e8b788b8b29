import type { EventFields, UnknownEventType } from '../event.ts'

/**
 * The service's event types, in the order of a media item's life. Other types reach only `onAny`. Everything that
 * depends on the types derives from this list, or is a table the compiler checks for completeness.
 */
export const eventTypes = [
  'file.received',
  'encoding.started',
  'partial.finished',
  'encoding.finished',
  'encoding.failed',
] as const

/** A type you can register handlers for. */
export type EventType = (typeof eventTypes)[number]

/** A type's flag in the service's API (`file_received`). An envelope may also use it. */
export type FlagName<Type extends EventType = EventType> = Type extends `${infer Subject}.${infer Verb}`
  ? `${Subject}_${Verb}`
  : never

/** `file_received` for `file.received`. */
export const flagName = <Type extends EventType>(type: Type) => type.replace('.', '_') as FlagName<Type>

/** Autocompletes the known words and accepts any string. */
type OpenEnum<Known extends string> = Known | (string & {})

/** State of the media item. The first three are documented, the others observed. */
export type MediaStatus = OpenEnum<'transcoding' | 'done' | 'fail' | 'new' | 'transcribing'>

/** `video` and `live-stream` are documented; `live_stream` and `audio` were observed. */
export type MediaType = OpenEnum<'video' | 'live-stream' | 'live_stream' | 'audio'>

interface MediaFields extends EventFields {
  /** Wire format: the service's flat payload, or the envelope of the SDK's sample receiver. */
  readonly format: 'flat' | 'envelope'
  readonly mediaType?: MediaType | undefined
  /** As sent, such as `360p`. Empty if the sender named none. */
  readonly qualities: readonly string[]
  readonly title?: string | undefined
  readonly status?: MediaStatus | undefined
  readonly userId?: string | undefined
}

/** A new file was uploaded. */
export interface FileReceivedEvent extends MediaFields {
  readonly type: 'file.received'
}

/** Encoding started. */
export interface EncodingStartedEvent extends MediaFields {
  readonly type: 'encoding.started'
}

/** One quality was encoded. */
export interface PartialFinishedEvent extends MediaFields {
  readonly type: 'partial.finished'
  /** `undefined` if the sender named none. */
  readonly quality: string | undefined
}

/** Encoding finished. */
export interface EncodingFinishedEvent extends MediaFields {
  readonly type: 'encoding.finished'
}

/** Encoding failed. */
export interface EncodingFailedEvent extends MediaFields {
  readonly type: 'encoding.failed'
}

/** An event of a type that this version does not know. */
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

/** A parsed event: the same for both wire formats. */
export type MediaEvent = KnownEvent | UnknownEvent
