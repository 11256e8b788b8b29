import type { EventType } from '../events/catalogue.ts'
import type { Payload } from './payload.ts'

/** What the service was seen to write as `status`, by the type of the event. */
const statuses: Record<EventType, string> = {
  'file.received': 'new',
  'encoding.started': 'transcoding',
  'partial.finished': '',
  'encoding.finished': 'done',
  'encoding.failed': 'fail',
}

/**
 * What the service writes into the fields that change over the life of a media.
 * @param qualities of the media; on `partial.finished` the one that has ended
 */
export function wordsOf(type: EventType, qualities: readonly string[]): Pick<Payload, 'qualities' | 'status'> {
  const named = type === 'encoding.started' ? [] : qualities.toSorted((a, b) => rank(a) - rank(b) || 0)
  return { qualities: named.join(','), status: statuses[type] }
}

/** Qualities ascend by their number; those without one come last. */
const rank = (quality: string): number => Number.parseInt(quality, 10) || Number.POSITIVE_INFINITY
