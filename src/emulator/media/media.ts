import * as z from 'zod'
import { notAnObject, readInput, unicode } from '../shared/input.ts'

/** What a media is made of. */
export interface MediaInput {
  /** @defaultValue 'Untitled.mp4' */
  readonly title?: string
  /**
   * Quality names, such as `360p`, in the order in which their encoding ends.
   * @defaultValue ['360p', '720p']
   */
  readonly qualities?: readonly string[]
  /**
   * Whether its encoding fails, at the last of its qualities.
   * @defaultValue false
   */
  readonly fails?: boolean
  /** @defaultValue 'video' */
  readonly mediaType?: string
}

/** A media and how far it has come. */
export interface Media extends Required<MediaInput> {
  readonly id: string
  readonly userId: string
  readonly createdAt: Date
  /** Every event of its life; those that have not been emitted yet have no `emittedAt`. */
  readonly timeline: readonly TimelineEntry[]
  readonly state: 'encoding' | 'finished' | 'failed'
}

/** An event in the life of a media. */
export interface TimelineEntry {
  readonly type: string
  /** The one quality, on `partial.finished`. */
  readonly quality?: string
  /** RFC 3339, as in the payload. */
  readonly emittedAt?: string
  /** The sendings of the event: one for each webhook that was subscribed to it. */
  readonly sendingIds: readonly string[]
}

const longestTitle = 255
const longestWord = 32

const word = unicode
  .min(1, { error: 'has to be a word, not an empty one' })
  .max(longestWord, { error: `has to be at most ${longestWord} characters long` })

// The service joins them by commas.
const quality = word.regex(/^[^,]*$/, { error: 'has to be without a comma: give each quality by itself' })

const howMany = { error: 'has to be a list of 1 to 20 qualities, such as 360p' }

const input: z.ZodType<Required<MediaInput>> = z.strictObject(
  {
    title: unicode
      .max(longestTitle, { error: `has to be at most ${longestTitle} characters long` })
      .default('Untitled.mp4'),
    qualities: z.array(quality, howMany).min(1, howMany).max(20, howMany).default(['360p', '720p']),
    fails: z.boolean({ error: 'has to be true or false' }).default(false),
    mediaType: word.default('video'),
  },
  notAnObject,
)

/**
 * What a media is made of, from outside, with what was left out filled in.
 * @throws WebhookError `invalid_option`, naming the field
 */
export const readMediaInput = (from: unknown): Required<MediaInput> => readInput('media', input, from)
