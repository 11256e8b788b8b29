import type { EventFields, UnknownEventType } from './event.ts'
import type { EventsByType, EventType, MediaEvent } from './media-service/catalogue.ts'
import type { LookedUpEvent } from './media-service/lookup.ts'
import type { AnySender } from './sender.ts'

// What the types of a receiver and of its handlers know about the sender.

/** The media service, which is the default sender. */
export interface MediaService extends AnySender {
  readonly name: 'media-service'
  readonly types: readonly EventType[]
}

/** The members of the Standard Schema specification that a sender uses. Schemas of zod, valibot and arktype have them. */
export interface StandardSchema<Data = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Data> | Promise<SchemaResult<Data>>
    readonly types?: { readonly input: unknown; readonly output: Data } | undefined
  }
}

/** The result of a Standard Schema. */
export type SchemaResult<Data> =
  | { readonly value: Data; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }

/**
 * A sender of your own, made by `defineSender`.
 * @typeParam Data the type of `event.data` for each event type
 */
export interface Sender<Data> extends AnySender {
  readonly types: readonly (keyof Data & string)[]
  /** The schemas, as defined. */
  readonly events: { readonly [Type in keyof Data]: StandardSchema<Data[Type]> }
}

/** An event of a sender of your own. */
export interface SenderEvent<Type extends string = string, Data = unknown> extends EventFields {
  readonly type: Type
  /** The data that `read` returned, as the schema of its type makes it. `unknown` if the sender has no schema for its type. */
  readonly data: Data
}

/** The event types of a sender. */
export type TypeOf<Of extends AnySender> = Of['types'][number]

/** The event of a type: `EventOf<'partial.finished'>` has `quality`, `EventOf<'video.asset.ready', typeof mux>` has `data`. */
export type EventOf<Type extends TypeOf<Of>, Of extends AnySender = MediaService> = EventFrom<Of, Type>

/** {@link EventOf} for a type that is checked elsewhere. */
export type EventFrom<Of extends AnySender, Type extends string> = Of extends MediaService
  ? EventsByType[Type & EventType]
  : Of extends Sender<infer Data>
    ? { [Each in Type & keyof Data]: SenderEvent<Each, Data[Each]> }[Type & keyof Data]
    : never

/** Any event of a sender, of an unknown type included. */
export type AnyEventOf<Of extends AnySender> = Of extends MediaService
  ? MediaEvent
  : EventFrom<Of, TypeOf<Of>> | SenderEvent<UnknownEventType, unknown>

/** What a look-up can find. */
export type LookupOf<Of extends AnySender> = Of extends MediaService ? LookedUpEvent : SenderLookup<TypeOf<Of>>

/** An event of a sender of your own that your look-up found. */
export interface SenderLookup<Type extends string = string> {
  readonly type: Type
  readonly mediaId: string
  /** The sender's id of the event, which becomes its key. */
  readonly id?: string | null | undefined
  /** The time at which it happened. Without it, the event happened when it was accepted. */
  readonly emittedAt?: Date | string | number | null | undefined
  /** Its data, which the schema of its type checks. */
  readonly data: unknown
  /** The principal whose event it is, if your verifier names one. */
  readonly principal?: string | null | undefined
}
