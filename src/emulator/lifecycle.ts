import { type Payload, timestamp } from './payload.ts'

/** A media and what becomes of it. */
export interface Media {
  readonly id: string
  readonly userId: string
  readonly title: string
  /** Quality names, such as `360p`, in the order in which their encoding ends. */
  readonly qualities: readonly string[]
  /** Whether its encoding fails, at the last of its qualities. */
  readonly fails?: boolean
  /** When its file was received, in nanoseconds since 1970. */
  readonly receivedAt: bigint
}

/** Between one event of a media and the next, in nanoseconds. */
const step = 2_716_057_313n

/** The payloads of a media from its upload to its end, in the order in which they are emitted. */
export function lifecycle(media: Media): Payload[] {
  const ascending = media.qualities.toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)).join(',')
  const encoded = media.fails ? media.qualities.slice(0, -1) : media.qualities
  const events: readonly (readonly [type: string, qualities: string, status: string])[] = [
    ['file.received', ascending, 'new'],
    ['encoding.started', '', 'transcoding'],
    ...encoded.map((quality) => ['partial.finished', quality, ''] as const),
    media.fails ? ['encoding.failed', ascending, 'fail'] : ['encoding.finished', ascending, 'done'],
  ]
  return events.map(([type, qualities, status], index) => ({
    type,
    emitted_at: timestamp(media.receivedAt + BigInt(index) * step),
    media_id: media.id,
    qualities,
    title: media.title,
    status,
    media_type: 'video',
    user_id: media.userId,
  }))
}

/**
 * The payload of the test delivery, which the service sends for `webhook.check`.
 * @param at in nanoseconds since 1970
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
