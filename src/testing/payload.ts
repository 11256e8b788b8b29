import type { EventType } from '../events/media-service/catalogue.ts'

/** A payload's fields, in the service's order. */
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

/** A payload of the service. All fields are present; one that does not apply is empty. */
export type Payload = Readonly<Record<(typeof fields)[number], string>>

export function makeBody(payload: Payload, format: 'flat' | 'envelope' = 'flat'): string {
  return format === 'flat' ? flatBody(payload) : envelopeBody(payload)
}

/** Writes a delivery body, byte for byte as the service does. */
export function flatBody(payload: Payload): string {
  return encodeObject(fields.map((field) => [field, jsonString(payload[field])]))
}

/** Writes the envelope that the sample receiver of the service's client library reads. */
export function envelopeBody({ type, media_id, ...rest }: Payload): string {
  const data = encodeObject([
    ['videoId', jsonString(media_id)],
    ['emittedAt', jsonString(rest.emitted_at)],
    ['qualities', jsonString(rest.qualities)],
    ['title', jsonString(rest.title)],
    ['status', jsonString(rest.status)],
    ['mediaType', jsonString(rest.media_type)],
    ['userId', jsonString(rest.user_id)],
  ])
  return encodeObject([
    ['event', jsonString(type)],
    ['data', data],
  ])
}

/**
 * Formats a time like Go's `time.RFC3339Nano` in UTC: 0 to 9 fractional digits, no trailing zeros.
 * @param nanoseconds since 1970; a `Date` would lose the last six digits
 */
export function timestamp(nanoseconds: bigint): string {
  const seconds = new Date(Number(nanoseconds / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)
  const fraction = (nanoseconds % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '')
  return fraction === '' ? `${seconds}Z` : `${seconds}.${fraction}Z`
}

const encodeObject = (members: readonly (readonly [name: string, json: string])[]): string =>
  `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`

/**
 * Encodes a string like Go's `encoding/json` since Go 1.22. Unlike `JSON.stringify`, it also escapes what could end a
 * `<script>` or a line of JavaScript, and writes lone surrogates as the escape `\ufffd`. A U+FFFD in the text stays as
 * it is.
 */
function jsonString(text: string): string {
  const wellFormed = text.split(/\p{Surrogate}/u).map((part) => JSON.stringify(part).slice(1, -1))
  return `"${wellFormed.join('\\ufffd').replace(/[<>&\u2028\u2029]/g, unicodeEscape)}"`
}

const unicodeEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Observed for each type: its `status`, and how many qualities it names. */
const observed: Record<EventType, { readonly status: string; readonly names: 'none' | 'one' | 'all' }> = {
  'file.received': { status: 'new', names: 'all' },
  'encoding.started': { status: 'transcoding', names: 'none' },
  'partial.finished': { status: '', names: 'one' },
  'encoding.finished': { status: 'done', names: 'all' },
  'encoding.failed': { status: 'fail', names: 'all' },
}

const counts = { none: 0, one: 1, all: Number.POSITIVE_INFINITY }

/** @param qualities the media item's qualities; on `partial.finished`, the finished one */
export function qualitiesAndStatus(
  type: EventType,
  qualities: readonly string[],
): Pick<Payload, 'qualities' | 'status'> {
  const { status, names } = observed[type]
  const named = qualities.slice(0, counts[names]).sort((a, b) => rank(a) - rank(b) || 0)
  return { qualities: named.join(','), status }
}

/** Sorts qualities by number. Those without one come last. */
const rank = (quality: string): number => Number.parseInt(quality, 10) || Number.POSITIVE_INFINITY
