import * as z from 'zod/mini'
import { $ZodObjectJIT } from 'zod/v4/core'
import { WebhookError } from '../errors.ts'
import type { JsonObject } from '../internal/json.ts'
import { eventTypes } from './catalogue.ts'

/** The fields of either wire format under one set of names. A field that is absent, null or empty is `undefined`. */
export interface WireEvent {
  readonly format: 'flat' | 'envelope'
  readonly type: string
  readonly mediaId: string
  readonly emittedAt: string | undefined
  readonly mediaType: string | undefined
  readonly qualities: string | undefined
  readonly title: string | undefined
  readonly status: string | undefined
  readonly userId: string | undefined
}

// A tolerant reader: it accepts unknown fields and unknown words, and rejects only a payload that lacks a required
// field or has a known field of another JSON type. Null and the empty string count as absent.
const text = z.nullish(z.string())
// Not minLength, which zod applies to any value with a length, also to one that fails to convert to a number.
const required = z.string().check(z.refine((text: string) => text !== ''))

/** The fields that both formats have, spelled as in the flat one. */
const common = {
  emitted_at: text,
  media_type: text,
  qualities: text,
  title: text,
  status: text,
  user_id: text,
}

/** An object that zod compiles, where code may be made from strings: checking a payload takes a third of the time. */
const compiled = <Shape extends z.core.$ZodShape>(shape: Shape): z.core.$ZodObject<Shape> =>
  new $ZodObjectJIT({ type: 'object', shape }) as z.core.$ZodObject<Shape>

const flat = compiled({ type: required, media_id: required, ...common })

// The SDK's sample receiver reads `{event, data: {videoId}}`; the spelling of its other fields is unknown.
const data = compiled({
  ...common,
  media_id: text,
  mediaId: text,
  video_id: text,
  videoId: text,
  emittedAt: text,
  mediaType: text,
  userId: text,
})
const envelope = compiled({ event: required, data })

/**
 * Reads a payload in either wire format. One with a string `type` is flat.
 * @throws WebhookError `malformed`, naming the field and never its value.
 */
export function readWireEvent(payload: JsonObject): WireEvent {
  const isEnvelope = !isText(payload['type']) && isText(payload['event'])
  return isEnvelope ? readEnvelope(payload) : readFlat(payload)
}

function readFlat(payload: JsonObject): WireEvent {
  const fields = check(flat, payload)
  return toWireEvent('flat', fields.type, fields.media_id, fields)
}

function readEnvelope(payload: JsonObject): WireEvent {
  const { event, data } = check(envelope, payload)
  const mediaId = data.videoId || data.video_id || data.mediaId || data.media_id
  if (!mediaId) throw malformedField('data.videoId', 'a non-empty string')
  return toWireEvent('envelope', dottedNames.get(event) ?? event, mediaId, data)
}

const toWireEvent = (
  format: WireEvent['format'],
  type: string,
  mediaId: string,
  fields: Partial<z.output<typeof data>>,
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
})

/** The names of the subscription flags, which an envelope may use. */
const dottedNames = new Map<string, string>(eventTypes.map((type) => [type.replace('.', '_'), type]))

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

function check<Schema extends z.core.$ZodType>(schema: Schema, payload: JsonObject): z.output<Schema> {
  const result = z.safeParse(schema, payload)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = issue?.path.join('.') ?? ''
  const isRequired = ['type', 'media_id'].includes(field)
  throw malformedField(field, field === 'data' ? 'an object' : isRequired ? 'a non-empty string' : 'a string')
}

const malformedField = (field: string, expected: string): WebhookError =>
  new WebhookError('malformed', `field ${field}: expected ${expected}`)
