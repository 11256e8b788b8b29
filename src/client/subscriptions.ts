import { type EventType, eventTypes, flagName } from '../events/media-service/catalogue.ts'
import { toCamelCase } from './naming.ts'

/** The field of a webhook that subscribes it to a type. */
export type Subscription<Type extends EventType = EventType> = Type extends `${infer Subject}.${infer Verb}`
  ? `${Subject}${Capitalize<Verb>}`
  : never

/** The event types that a webhook receives, one flag each: `fileReceived` for `file.received`. */
export type Subscriptions = { readonly [Type in EventType as Subscription<Type>]?: boolean | undefined }

/** Returns the field of a webhook that subscribes it to a type: `fileReceived` for `file.received`. */
export const subscription = <Type extends EventType>(type: Type) => toCamelCase(flagName(type)) as Subscription<Type>

/** Makes an object with the field of each type. */
export const subscriptions = <Value>(valueFor: (type: EventType) => Value) =>
  Object.fromEntries(eventTypes.map((type) => [subscription(type), valueFor(type)])) as Record<Subscription, Value>
