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
