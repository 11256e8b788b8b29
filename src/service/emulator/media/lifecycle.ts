import { type EventType, eventTypes } from '../../../events/media-service/catalogue.ts'
import { type Payload, qualitiesAndStatus, timestamp } from '../../../testing/payload.ts'

export interface MediaFacts {
  readonly id: string
  readonly userId: string
  readonly title: string
  /** Quality names, such as `360p`, in the order they finish encoding. */
  readonly qualities: readonly string[]
  readonly fails?: boolean
  /** @defaultValue 'video' */
  readonly mediaType?: string
}

/** An event in a media item's lifecycle, before it is emitted. */
export interface LifecycleEvent {
  readonly type: EventType
  /** The finished quality, on `partial.finished`. */
  readonly quality?: string
}

/** Time between two events of a media item (ns). */
export const eventIntervalNs = 2_716_057_313n

/** Lists a media item's events from upload to end, in order. */
export function makeLifecycle({
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

/** @param at the emission time, in nanoseconds since 1970 */
export function makePayload(media: MediaFacts, { type, quality }: LifecycleEvent, at: bigint): Payload {
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

/** @param at the emission time, in nanoseconds since 1970 */
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
