import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { awaitedBy } from '../engine/stored.ts'
import type { EventRecord } from '../reading.ts'

/** What pages show of an event whose payload is gone. */
export type EventHead = Pick<EventRecord, 'key' | 'type' | 'mediaId' | 'awaited'>

// An array, because field names would double its size, for every event of a day. By default a key starts with type and
// media item; then only its end is stored, in an array.
type Stored = [type: string, mediaId: string, key: string | [end: string], awaited?: readonly string[]]

const startOfKey = (type: string, mediaId: string): string => `[${JSON.stringify(type)},${JSON.stringify(mediaId)}`

/** Returns the JSON of an event's head. The first element is its type: lists search for `["type",` at its start. */
export function writeHead(event: MediaEvent): string {
  const { key, type, mediaId } = event
  const start = startOfKey(type, mediaId)
  const short = key.startsWith(start) ? `[${JSON.stringify(key.slice(start.length))}]` : JSON.stringify(key)
  const { awaited } = awaitedBy(event)
  // `start` is JSON already. Concatenating is faster than serialising an array.
  return `${start},${short}${awaited === undefined ? '' : `,${JSON.stringify(awaited)}`}]`
}

export function readHead(json: string): EventHead {
  const [type, mediaId, key, awaited] = JSON.parse(json) as Stored
  return {
    type,
    mediaId,
    key: typeof key === 'string' ? key : startOfKey(type, mediaId) + key[0],
    ...(awaited !== undefined && { awaited }),
  }
}
