import { type EventType, eventTypes } from '../../events/media-service/catalogue.ts'
import { type Payload, qualitiesAndStatus, timestamp } from '../../testing/payload.ts'

/** The properties of a media item that its events contain. */
export interface MediaFacts {
  readonly id: string
  readonly userId: string
  readonly title: string
  /** Quality names, such as `360p`, in the order in which they finish encoding. */
  readonly qualities: readonly string[]
  /** `true` when the encoding fails, at the last quality. */
  readonly fails?: boolean
  /** @defaultValue 'video' */
  readonly mediaType?: string
}

/** An event in the lifecycle of a media item, before it is emitted. */
export interface LifecycleEvent {
  readonly type: EventType
  /** The quality that finished, on `partial.finished`. */
  readonly quality?: string
}

/** The time between two events of a media item, in nanoseconds. */
export const eventIntervalNs = 2_716_057_313n

/** Lists the events of a media item from its upload to its end, in the order in which they are emitted. */
export function lifecycleOf({
  qualities,
  fails = false,
}: Pick<MediaFacts, 'qualities' | 'fails'>): readonly LifecycleEvent[] {
  const encoded = fails ? qualities.slice(0, -1) : qualities
  const life: Record<EventType, readonly Pick<LifecycleEvent, 'quality'>[]> = {
    'file.received': [{}],
    'encoding.started': [{}],
    'partial.finished': encoded.map((quality) => ({ quality })),
    'encoding.finished': fails ? [] : [{}],
    'encoding.failed': fails ? [{}] : [],
  }
  return eventTypes.flatMap((type) => life[type].map((event) => ({ type, ...event })))
}

/**
 * Makes the payload of an event of a media item.
 * @param at when the event is emitted, in nanoseconds since 1970
 */
export function payloadOf(media: MediaFacts, { type, quality }: LifecycleEvent, at: bigint): Payload {
  return {
    type,
    emitted_at: timestamp(at),
    media_id: media.id,
    ...qualitiesAndStatus(type, quality === undefined ? media.qualities : [quality]),
    title: media.title,
    media_type: media.mediaType ?? 'video',
    user_id: media.userId,
  }
}

/**
 * Makes the payload of the test delivery that the service sends for `webhook.check`.
 * @param at when the event is emitted, in nanoseconds since 1970
 */
export function testPayload(userId: string, at: bigint): Payload {
  return {
    type: 'encoding.started',
    emitted_at: timestamp(at),
    media_id: '00000000-0000-0000-0000-000000000000',
    qualities: '720p',
    title: 'Test.mp4',
    status: '',
    media_type: 'video',
    user_id: userId,
  }
}
