import { type EventType, eventTypes, flagName } from '../../events/media-service/catalogue.ts'
import { toCamelCase } from './naming.ts'

/** The webhook field that subscribes to an event type. */
export type Subscription<Type extends EventType = EventType> = Type extends `${infer Subject}.${infer Verb}`
  ? `${Subject}${Capitalize<Verb>}`
  : never

/** One flag per event type: `fileReceived` for `file.received`. */
export type Subscriptions = { readonly [Type in EventType as Subscription<Type>]?: boolean | undefined }

export const subscription = <Type extends EventType>(type: Type) => toCamelCase(flagName(type)) as Subscription<Type>

export const subscriptions = <Value>(valueFor: (type: EventType) => Value) =>
  Object.fromEntries(eventTypes.map((type) => [subscription(type), valueFor(type)])) as Record<Subscription, Value>
