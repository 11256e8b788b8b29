import type { EventFields, UnknownEventType } from './event.ts'
import type { EventsByType, EventType, MediaEvent } from './media-service/catalogue.ts'
import type { LookedUpEvent } from './media-service/lookup.ts'
import type { AnySender } from './sender.ts'

// Types that derive a receiver's events from its sender.

/** The media service, the default sender. */
export interface MediaService extends AnySender {
  readonly name: 'media-service'
  readonly types: readonly EventType[]
}

/** The part of Standard Schema that senders use. zod, valibot and arktype schemas have it. */
export interface StandardSchema<Data = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Data> | Promise<SchemaResult<Data>>
    readonly types?: { readonly input: unknown; readonly output: Data } | undefined
  }
}

export type SchemaResult<Data> =
  | { readonly value: Data; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }

/**
 * Your own sender, from `defineSender`.
 * @typeParam Data the type of `event.data` by event type
 */
export interface Sender<Data> extends AnySender {
  readonly types: readonly (keyof Data & string)[]
  /** The schemas you passed. */
  readonly events: { readonly [Type in keyof Data]: StandardSchema<Data[Type]> }
}

/** An event of your own sender. */
export interface SenderEvent<Type extends string = string, Data = unknown> extends EventFields {
  readonly type: Type
  /** The output of the type's schema. `unknown` for a type without one. */
  readonly data: Data
}

/** The event types of a sender. */
export type TypeOf<Of extends AnySender> = Of['types'][number]

/** `EventOf<'partial.finished'>` has `quality`, `EventOf<'video.asset.ready', typeof mux>` has `data`. */
export type EventOf<Type extends TypeOf<Of>, Of extends AnySender = MediaService> = EventFrom<Of, Type>

/** {@link EventOf} without the constraint on the type. */
export type EventFrom<Of extends AnySender, Type extends string> = Of extends MediaService
  ? EventsByType[Type & EventType]
  : Of extends Sender<infer Data>
    ? { [Each in Type & keyof Data]: SenderEvent<Each, Data[Each]> }[Type & keyof Data]
    : never

/** Any event of a sender, unknown types included. */
export type AnyEventOf<Of extends AnySender> = Of extends MediaService
  ? MediaEvent
  : EventFrom<Of, TypeOf<Of>> | SenderEvent<UnknownEventType, unknown>

export type LookupOf<Of extends AnySender> = Of extends MediaService ? LookedUpEvent : SenderLookup<TypeOf<Of>>

/** An event of your own sender that your look-up found. */
export interface SenderLookup<Type extends string = string> {
  readonly type: Type
  readonly mediaId: string
  /** The sender's event id. Becomes the key. */
  readonly id?: string | null | undefined
  /** Defaults to the time of acceptance. */
  readonly emittedAt?: Date | string | number | null | undefined
  /** Validated by the schema of its type. */
  readonly data: unknown
  /** The principal, if your verifier names one. */
  readonly principal?: string | null | undefined
}
