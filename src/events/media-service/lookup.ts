import { isDate, readTime } from '../json.ts'
import { lookedUpText, wrongLookup } from '../lookup.ts'
import { type EventType, eventTypes, type MediaEvent } from './catalogue.ts'

/** An event that your look-up found. `null` and `''` count as absent. */
export interface LookedUpEvent {
  readonly type: EventType
  readonly mediaId: string
  /**
   * A `Date` or RFC 3339. Defaults to the time of acceptance; then an event with equal fields is a duplicate while its
   * key is remembered.
   */
  readonly emittedAt?: Date | string | null | undefined
  /** Such as `360p`. */
  readonly qualities?: readonly string[] | null | undefined
  readonly title?: string | null | undefined
  readonly status?: string | null | undefined
  readonly mediaType?: string | null | undefined
  readonly userId?: string | null | undefined
  /** The principal, if your verifier names one. Part of the event key. */
  readonly principal?: string | null | undefined
}

/** Builds the payload the service would have sent. Stricter than the wire reader, which would tolerate a typo. */
export function toPayload(found: Omit<LookedUpEvent, 'principal'>): Readonly<Record<string, string>> {
  const { type, emittedAt, mediaId, qualities, title, status, mediaType, userId, ...unknown } = found
  const [unknownField] = Object.keys(unknown)
  if (unknownField !== undefined) throw wrongLookup(`there is no field ${unknownField}`)
  if (!eventTypes.includes(type)) throw malformedField('type', `one of ${eventTypes.join(', ')}`)
  const payload = {
    type,
    emitted_at: normalizeTime(emittedAt),
    media_id: lookedUpText('mediaId', mediaId),
    qualities: normalizeNames(qualities),
    title: lookedUpText('title', title),
    status: lookedUpText('status', status),
    media_type: lookedUpText('mediaType', mediaType),
    user_id: lookedUpText('userId', userId),
  }
  if (payload.media_id === '') throw malformedField('mediaId', 'a non-empty string')
  return Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== ''))
}

// The payload joins the names with commas, ascending as in a delivery: their order makes no other event.
function normalizeNames(qualities: unknown): string {
  if (qualities === undefined || qualities === null) return ''
  const isList = Array.isArray(qualities) && qualities.every((name) => typeof name === 'string' && !name.includes(','))
  if (!isList) throw malformedField('qualities', "a list of names without commas, such as ['360p']")
  return qualities.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).join(',')
}

/** Writes a time as the service does, so that a `Date` is the time of its text. */
function normalizeTime(value: unknown): string {
  const text = isDate(value) ? formatDate(value) : lookedUpText('emittedAt', value)
  if (text === '') return text
  if (readTime(text) !== undefined) return text.replace(/(?:\.0+|(\.\d*[1-9])0+)?(?:Z|[+-]00:00)$/, '$1Z')
  throw malformedField('emittedAt', 'a valid Date, or RFC 3339 such as 2026-03-01T12:00:00Z')
}

const formatDate = (date: Date): string => (Number.isNaN(date.getTime()) ? 'no time' : date.toISOString())

const malformedField = (field: string, expected: string) => wrongLookup(`field ${field}: expected ${expected}`)

/**
 * Gives a looked-up event and its late delivery the same key: type, media id, quality names, and the principal if any.
 * Use it as `createReceiver({ eventKey: lifecycleKey })`.
 *
 * The price: an event that recurs for a media item, such as the end of a second encoding, is a duplicate while the
 * first key is remembered. Test deliveries and unknown types keep their own keys.
 */
export const lifecycleKey = ({ type, mediaId, qualities, principal, test, key }: MediaEvent): string =>
  !test && (eventTypes as readonly string[]).includes(type)
    ? JSON.stringify([type, mediaId, qualities.toSorted(), ...(principal === undefined ? [] : [principal])])
    : key
