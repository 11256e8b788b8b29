import * as z from 'zod/mini'
import { $ZodObjectJIT } from 'zod/v4/core'
import { WebhookError } from '../../errors.ts'
import { isObject, type JsonObject } from '../json.ts'
import { eventTypes, flagName } from './catalogue.ts'

/** Both wire formats under one set of names. `undefined` for absent, null or empty fields. */
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
  /** Fields sent with another JSON type. */
  readonly issues: readonly string[]
}

// Tolerant reader: accepts unknown fields, unknown words and other JSON types, and rejects only payloads without a type
// or media id. Null and `''` count as absent.
const text = z.nullish(z.string())

/** In both formats, spelled as in the flat one. */
const common = {
  emitted_at: text,
  media_id: text,
  media_type: text,
  qualities: text,
  title: text,
  status: text,
  user_id: text,
}

/** zod compiles this schema to code where the runtime allows `eval`, which parses three times as fast. */
const compiled = <Shape extends z.core.$ZodShape>(shape: Shape): z.core.$ZodObject<Shape> =>
  new $ZodObjectJIT({ type: 'object', shape }) as z.core.$ZodObject<Shape>

const flatFields = { type: text, ...common }

// The SDK's sample receiver reads `{event, data: {videoId}}`; how it spells other fields is unknown.
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

/** Fields of another JSON type are converted if the meaning is obvious, otherwise `undefined`. */
type Fields = { readonly [name in TextName]?: string | null } & {
  readonly [name in TimeName]?: string | number | null
} & { readonly qualities?: string | readonly string[] | null }

interface ReadFields {
  readonly fields: Fields
  /** Names of the fields of another JSON type. */
  readonly issues: readonly string[]
}

/**
 * Reads either wire format. A payload with a string `type` is flat.
 * @throws WebhookError `malformed`, naming the field but not its value
 */
export function readWireEvent(payload: JsonObject): WireEvent {
  const isEnvelope = !isText(payload['type']) && isText(payload['event'])
  return isEnvelope ? readEnvelope(payload) : readFlat(payload)
}

function readFlat(payload: JsonObject): WireEvent {
  const read = readFields(flat, payload)
  const { type, media_id: mediaId } = read.fields
  if (!type) throw malformedField('type', 'a non-empty string')
  if (!mediaId) throw malformedField('media_id', 'a non-empty string')
  return toWireEvent('flat', type, mediaId, read)
}

function readEnvelope({ event, data }: JsonObject): WireEvent {
  if (!isObject(data) || Array.isArray(data)) throw malformedField('data', 'an object')
  const { fields, issues } = readFields(enveloped, data)
  const mediaId = fields.videoId || fields.video_id || fields.mediaId || fields.media_id
  if (!mediaId) throw malformedField('data.videoId', 'a non-empty string')
  const type = dottedNames.get(event as string) ?? (event as string)
  return toWireEvent('envelope', type, mediaId, { fields, issues: issues.map((name) => `data.${name}`) })
}

const toWireEvent = (
  format: WireEvent['format'],
  type: string,
  mediaId: string,
  { fields, issues }: ReadFields,
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

/** Reads the fields and lists those of another JSON type. */
function readFields(schema: z.core.$ZodObject, object: JsonObject): ReadFields {
  const result = z.safeParse(schema, object)
  if (result.success) return { fields: result.data as Fields, issues: noIssues }
  const issues = result.error.issues.map(({ path }) => String(path[0]))
  const readings = Object.keys(schema._zod.def.shape).map((name) => [
    name,
    issues.includes(name) ? readOtherType(name, object[name]) : object[name],
  ])
  return { fields: Object.fromEntries(readings), issues }
}

/** Converts a field of another JSON type if its meaning is obvious. */
function readOtherType(name: string, value: unknown): unknown {
  if (typeof value === 'number') {
    if (/^emitted/.test(name)) return value
    // An unsafe integer has lost digits and could name another media item.
    return /id$/i.test(name) && Number.isSafeInteger(value) ? String(value) : undefined
  }
  const isListOfNames = name === 'qualities' && Array.isArray(value) && value.every((each) => typeof each === 'string')
  return isListOfNames ? value : undefined
}

const malformedField = (field: string, expected: string): WebhookError =>
  new WebhookError('malformed', `field ${field}: expected ${expected}`)
