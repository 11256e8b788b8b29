import * as z from 'zod'
import { notAnObject, readInput, unicode } from '../shared/input.ts'

/** A media item to upload. */
export interface MediaInput {
  /** @defaultValue 'Untitled.mp4' */
  readonly title?: string
  /**
   * Quality names, such as `360p`, in the order they finish encoding.
   * @defaultValue ['360p', '720p']
   */
  readonly qualities?: readonly string[]
  /**
   * `true` makes the encoding fail at the last quality.
   * @defaultValue false
   */
  readonly fails?: boolean
  /** @defaultValue 'video' */
  readonly mediaType?: string
}

/** A media item and its progress. */
export interface Media extends Required<MediaInput> {
  /** The `media_id` of its events. */
  readonly id: string
  /** The `user_id` of its events. */
  readonly userId: string
  readonly createdAt: Date
  /** Its whole lifecycle. Events still to come have no `emittedAt`. */
  readonly timeline: readonly TimelineEntry[]
  /** `encoding` until its last event was emitted. */
  readonly state: 'encoding' | 'finished' | 'failed'
}

/** An event in a media item's lifecycle. */
export interface TimelineEntry {
  readonly type: string
  /** The finished quality, on `partial.finished`. */
  readonly quality?: string
  /** The payload's `emitted_at`, in RFC 3339. */
  readonly emittedAt?: string
  /** The ids of the event's sendings, one per subscribed webhook. */
  readonly sendingIds: readonly string[]
}

const longestTitle = 255
const longestWord = 32

const word = unicode
  .min(1, { error: 'must not be empty' })
  .max(longestWord, { error: `must be at most ${longestWord} characters long` })

// The service joins qualities with commas.
const quality = word.regex(/^[^,]*$/, { error: 'must not contain a comma: list each quality separately' })

const listOfQualities = { error: 'must be a list of 1 to 20 qualities, such as 360p' }

const input: z.ZodType<Required<MediaInput>> = z.strictObject(
  {
    title: unicode
      .max(longestTitle, { error: `must be at most ${longestTitle} characters long` })
      .default('Untitled.mp4'),
    qualities: z
      .array(quality, listOfQualities)
      .min(1, listOfQualities)
      .max(20, listOfQualities)
      .default(['360p', '720p']),
    fails: z.boolean({ error: 'must be true or false' }).default(false),
    mediaType: word.default('video'),
  },
  notAnObject,
)

/** @throws WebhookError `invalid_option`, naming the field */
export const readMediaInput = (from: unknown): Required<MediaInput> => readInput('media', input, from)
