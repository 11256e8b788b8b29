import { isObject, type JsonObject, readTime } from '../../../../events/json.ts'
import type { ReceivedDelivery } from '../find-verifiers.ts'

/** What a sender is guessed from. */
export interface Sample extends Pick<ReceivedDelivery, 'fields' | 'headers'> {
  readonly payload: JsonObject
  /** The payload is one of a list. */
  readonly isListed: boolean
}

/** A place in a delivery, and the code that reads it. */
interface Place {
  readonly code: string
  find(sample: Sample): unknown
}

/** What `read` returns, as far as it can be guessed. */
export interface Guess {
  /** In the order to try. Only {@link unknown} if nothing was found. */
  readonly type: readonly Place[]
  readonly mediaId: readonly Place[]
  readonly id?: Place | undefined
  readonly time?: Place | undefined
  readonly data?: Place | undefined
  /** The verifier gives the id. */
  readonly hasSignedId: boolean
}

/** True for a name such as `video.asset.ready` or `orders/create`. An id or a title is none. */
export const isTypeName = (value: unknown): value is string =>
  typeof value === 'string' &&
  /^[\w.:-]{1,100}(\/[\w.:-]{1,100})?$/.test(value) &&
  !/\d{4}|(\d[a-z-]*){5}/i.test(value) &&
  value !== '__proto__'

const typeHeader = /^x-[a-z-]{1,40}-(event|event-type|event-name|topic)$|^x-event(-type)?$/
const idHeader = /^x-([a-z-]{1,40}-)?(delivery|delivery-id|event-id|event-uuid|webhook-id)$/
const types = ['type', 'event', 'event_type', 'eventType', 'event_name', 'topic']
const mediaIds = ['media_id', 'mediaId', 'video_id', 'videoId', 'asset_id', 'assetId', 'file_id', 'fileId']
// The later a name, the likelier it is a time of the item, not of the event.
const times = [
  ...['emitted_at', 'emittedAt', 'occurred_at', 'occurredAt', 'event_time', 'timestamp', 'sent_at', 'time', 'at'],
  ...['updated_at', 'updatedAt', 'modified', 'created_at', 'createdAt', 'created', 'date'],
]
const containers = ['data', 'payload']

export function guess(samples: readonly Sample[]): Guess {
  const data = choose(samples, containers.map(field), isObject)
  const inside = (names: readonly string[]) =>
    containers.flatMap((name) => names.map((each) => field(`${name}.${each}`)))
  const mediaId = chain(
    samples,
    [
      ...mediaIds.map(field),
      ...inside(mediaIds),
      ...['object.id', 'resource.id', 'data.object.id'].map(field),
      ...inside(['uid', 'id']),
      ...['uid', 'id'].map(field),
    ],
    isId,
  )
  // In a flat body, `id` may be the item's: as the event's it would make duplicates of the item's later events.
  const isEnvelope = mediaId.every((place) => place.code !== 'id' && place !== unknown)
  return {
    type: chain(samples, [...types.map(field), ...headersLike(samples, typeHeader), field('action')], isTypeName),
    mediaId,
    id: choose(
      samples,
      [...['event_id', 'eventId', ...(isEnvelope ? ['id'] : [])].map(field), ...headersLike(samples, idHeader)],
      isId,
    ),
    time: choose(samples, times.map(field), isTime),
    data,
    hasSignedId: samples.some(({ headers }) => headers.get('webhook-id') ?? headers.get('svix-id')),
  }
}

/** Reads a delivery as `a || b` does. */
export const findFirst = (places: readonly Place[], sample: Sample): unknown =>
  places.map((place) => place.find(sample)).find(Boolean)

/** For deliveries in which nothing fits. */
export const unknown: Place = { code: "'unknown'", find: () => 'unknown' }

/** @param path names that are identifiers, with dots */
const field = (path: string): Place => ({
  code: path.replaceAll('.', '?.'),
  find: ({ payload }) =>
    path.split('.').reduce<unknown>((value, name) => {
      return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
    }, payload),
})

const headersLike = (samples: readonly Sample[], form: RegExp): Place[] =>
  [...new Set(samples.flatMap(({ fields }) => fields.map(([name]) => name.toLowerCase())))]
    .filter((name) => form.test(name))
    .map((name) => ({ code: `headers.get('${name}')`, find: ({ headers }) => headers.get(name) }))

type Fits = (value: unknown) => boolean

/** Returns the place that fits the most samples, the first of equals. */
function choose(samples: readonly Sample[], places: readonly Place[], fits: Fits): Place | undefined {
  const counts = places.map((place) => samples.filter((sample) => fits(place.find(sample))).length)
  const most = Math.max(...counts)
  return most > 0 ? places[counts.indexOf(most)] : undefined
}

function chain(samples: readonly Sample[], places: readonly Place[], fits: Fits): Place[] {
  if (samples.length === 0) return []
  const best = choose(samples, places, fits)
  if (best === undefined) return [unknown]
  const others = samples.filter((sample) => !fits(best.find(sample)))
  return [best, ...chain(others, places, fits)]
}

const isId = (value: unknown): boolean => (typeof value === 'string' && value !== '') || Number.isSafeInteger(value)

const isTime = (value: unknown): boolean =>
  (typeof value === 'string' || typeof value === 'number') && readTime(value) !== undefined
