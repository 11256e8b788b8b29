import type { EventType } from '../events/media-service/catalogue.ts'

/** The fields of a payload, in the order in which the service writes them. */
export const fields = [
  'type',
  'emitted_at',
  'media_id',
  'qualities',
  'title',
  'status',
  'media_type',
  'user_id',
] as const

/** A payload of the service. A field that does not apply is the empty string; no field is left out. */
export type Payload = Readonly<Record<(typeof fields)[number], string>>

/** Writes the body of a delivery in one of the wire formats. */
export function bodyOf(payload: Payload, format: 'flat' | 'envelope' = 'flat'): string {
  return format === 'flat' ? flatBody(payload) : envelopeBody(payload)
}

/** Writes the body of a delivery, byte for byte as the service does. */
export function flatBody(payload: Payload): string {
  return objectOf(fields.map((field) => [field, jsonString(payload[field])]))
}

/** Writes the payload in the envelope that the sample receiver of the service's client library reads. */
export function envelopeBody({ type, media_id, ...rest }: Payload): string {
  const data = objectOf([
    ['videoId', jsonString(media_id)],
    ['emittedAt', jsonString(rest.emitted_at)],
    ['qualities', jsonString(rest.qualities)],
    ['title', jsonString(rest.title)],
    ['status', jsonString(rest.status)],
    ['mediaType', jsonString(rest.media_type)],
    ['userId', jsonString(rest.user_id)],
  ])
  return objectOf([
    ['event', jsonString(type)],
    ['data', data],
  ])
}

/**
 * Writes a time as Go's `time.RFC3339Nano` does in UTC: with 0 to 9 fractional digits and no trailing zeros.
 * @param nanoseconds the time in nanoseconds since 1970; a `Date` would lose the last six digits
 */
export function timestamp(nanoseconds: bigint): string {
  const seconds = new Date(Number(nanoseconds / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)
  const fraction = (nanoseconds % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '')
  return fraction === '' ? `${seconds}Z` : `${seconds}.${fraction}Z`
}

const objectOf = (members: readonly (readonly [name: string, json: string])[]): string =>
  `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`

/**
 * Writes a string as Go's `encoding/json` does since Go 1.22. It agrees with `JSON.stringify` on quotes, backslashes
 * and control characters. Go also escapes characters that could end a `<script>` or a line of JavaScript, and writes
 * lone surrogates as the escape `\ufffd`. A U+FFFD in the text stays a character.
 */
function jsonString(text: string): string {
  const wellFormed = text.split(/\p{Surrogate}/u).map((part) => JSON.stringify(part).slice(1, -1))
  return `"${wellFormed.join('\\ufffd').replace(/[<>&\u2028\u2029]/g, unicodeEscape)}"`
}

const unicodeEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The `status` that the service was observed to write for each type, and how many qualities it was observed to name. */
const observed: Record<EventType, { readonly status: string; readonly names: 'none' | 'one' | 'all' }> = {
  'file.received': { status: 'new', names: 'all' },
  'encoding.started': { status: 'transcoding', names: 'none' },
  'partial.finished': { status: '', names: 'one' },
  'encoding.finished': { status: 'done', names: 'all' },
  'encoding.failed': { status: 'fail', names: 'all' },
}

const counts = { none: 0, one: 1, all: Number.POSITIVE_INFINITY }

/**
 * Returns the two fields that change over the lifecycle of a media item.
 * @param qualities the qualities of the media item; on `partial.finished` the one that finished
 */
export function qualitiesAndStatus(
  type: EventType,
  qualities: readonly string[],
): Pick<Payload, 'qualities' | 'status'> {
  const { status, names } = observed[type]
  const named = qualities.slice(0, counts[names]).sort((a, b) => rank(a) - rank(b) || 0)
  return { qualities: named.join(','), status }
}

/** Qualities are sorted by their number. Those without a number come last. */
const rank = (quality: string): number => Number.parseInt(quality, 10) || Number.POSITIVE_INFINITY
