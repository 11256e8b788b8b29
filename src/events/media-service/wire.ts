import * as z from 'zod/mini'
import { $ZodObjectJIT } from 'zod/v4/core'
import { WebhookError } from '../../errors.ts'
import { isObject, type JsonObject } from '../json.ts'
import { eventTypes, flagName } from './catalogue.ts'

/** The fields of either wire format under one set of names. A field that is absent, null or empty is `undefined`. */
export interface WireEvent {
  readonly format: 'flat' | 'envelope'
  readonly type: string
  readonly mediaId: string
  readonly emittedAt: string | number | undefined
  readonly mediaType: string | undefined
  readonly qualities: string | readonly string[] | undefined
  readonly title: string | undefined
  readonly status: string | undefined
  readonly userId: string | undefined
  /** The fields that were sent as another JSON type. */
  readonly issues: readonly string[]
}

// A tolerant reader: it accepts unknown fields, unknown words and fields of another JSON type, and rejects only a payload
// without a type or a media id. Null and the empty string count as absent.
const text = z.nullish(z.string())

/** The fields that both formats have, spelled as in the flat one. */
const common = {
  emitted_at: text,
  media_id: text,
  media_type: text,
  qualities: text,
  title: text,
  status: text,
  user_id: text,
}

/**
 * zod compiles this object if the runtime may make code from strings. Checking a payload then takes a third of the
 * time.
 */
const compiled = <Shape extends z.core.$ZodShape>(shape: Shape): z.core.$ZodObject<Shape> =>
  new $ZodObjectJIT({ type: 'object', shape }) as z.core.$ZodObject<Shape>

const flatFields = { type: text, ...common }

// The SDK's sample receiver reads `{event, data: {videoId}}`; the spelling of its other fields is unknown.
const envelopeFields = {
  ...common,
  mediaId: text,
  video_id: text,
  videoId: text,
  emittedAt: text,
  mediaType: text,
  userId: text,
}

const flat = compiled(flatFields)
const enveloped = compiled(envelopeFields)

type TimeName = 'emitted_at' | 'emittedAt'
type TextName = Exclude<keyof typeof flatFields | keyof typeof envelopeFields, TimeName | 'qualities'>

/** The fields of a payload. A field of another JSON type has the value that is obviously meant, or is `undefined`. */
type Fields = { readonly [name in TextName]?: string | null } & {
  readonly [name in TimeName]?: string | number | null
} & { readonly qualities?: string | readonly string[] | null }

/**
 * Reads a payload in either wire format. One with a string `type` is flat.
 * @throws WebhookError `malformed`, naming the field and never its value.
 */
export function readWireEvent(payload: JsonObject): WireEvent {
  const isEnvelope = !isText(payload['type']) && isText(payload['event'])
  return isEnvelope ? readEnvelope(payload) : readFlat(payload)
}

function readFlat(payload: JsonObject): WireEvent {
  const { fields, issues } = readFields(flat, payload)
  if (!fields.type) throw malformedField('type', 'a non-empty string')
  if (!fields.media_id) throw malformedField('media_id', 'a non-empty string')
  return toWireEvent('flat', fields.type, fields.media_id, fields, issues)
}

function readEnvelope({ event, data }: JsonObject): WireEvent {
  if (!isObject(data) || Array.isArray(data)) throw malformedField('data', 'an object')
  const { fields, issues } = readFields(enveloped, data)
  const mediaId = fields.videoId || fields.video_id || fields.mediaId || fields.media_id
  if (!mediaId) throw malformedField('data.videoId', 'a non-empty string')
  const type = dottedNames.get(event as string) ?? (event as string)
  return toWireEvent(
    'envelope',
    type,
    mediaId,
    fields,
    issues.map((name) => `data.${name}`),
  )
}

const toWireEvent = (
  format: WireEvent['format'],
  type: string,
  mediaId: string,
  fields: Fields,
  issues: readonly string[],
): WireEvent => ({
  format,
  type,
  mediaId,
  emittedAt: fields.emitted_at || fields.emittedAt || undefined,
  mediaType: fields.media_type || fields.mediaType || undefined,
  qualities: fields.qualities || undefined,
  title: fields.title || undefined,
  status: fields.status || undefined,
  userId: fields.user_id || fields.userId || undefined,
  issues,
})

const dottedNames = new Map<string, string>(eventTypes.map((type) => [flagName(type), type]))

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

const noIssues: readonly string[] = Object.freeze([])

/** Reads the fields, and names those of another JSON type. */
function readFields(schema: z.core.$ZodObject, object: JsonObject): { fields: Fields; issues: readonly string[] } {
  const result = z.safeParse(schema, object)
  if (result.success) return { fields: result.data as Fields, issues: noIssues }
  const issues = result.error.issues.map(({ path }) => String(path[0]))
  const readings = Object.keys(schema._zod.def.shape).map((name) => [
    name,
    issues.includes(name) ? readOtherType(name, object[name]) : object[name],
  ])
  return { fields: Object.fromEntries(readings), issues }
}

/** Reads a field of another JSON type if its meaning is obvious. */
function readOtherType(name: string, value: unknown): unknown {
  if (typeof value === 'number') {
    if (/^emitted/.test(name)) return value
    // A larger integer has lost digits, and could name another media item.
    return /id$/i.test(name) && Number.isSafeInteger(value) ? String(value) : undefined
  }
  const isListOfNames = name === 'qualities' && Array.isArray(value) && value.every((each) => typeof each === 'string')
  return isListOfNames ? value : undefined
}

const malformedField = (field: string, expected: string): WebhookError =>
  new WebhookError('malformed', `field ${field}: expected ${expected}`)
