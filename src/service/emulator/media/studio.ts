import { WebhookError } from '../../../errors.ts'
import type { Payload } from '../../../testing/payload.ts'
import type { Changes } from '../shared/changes.ts'
import { type Clock, toDate } from '../shared/clock.ts'
import { RecentItems } from '../shared/recent-items.ts'
import { eventIntervalNs, type LifecycleEvent, makeLifecycle, makePayload } from './lifecycle.ts'
import type { Media, MediaInput } from './media.ts'
import { readMediaInput } from './media.ts'

export interface StudioOptions {
  readonly clock: Clock
  readonly newId: () => string
  /** Scales the delay between a media item's events. */
  readonly timeScale: number
  readonly userId: string
  /** Maximum number of unfinished media items, and of finished ones kept. */
  readonly maxRecords: number
  readonly changes: Changes
  /** Sends an event and returns the ids of its sendings. If it throws `overloaded`, nothing was sent: it is retried. */
  readonly emit: (payload: Payload) => readonly string[]
}

/** Minimum delay of a retry after `overloaded` (ms), so that many waiting media items don't slow the rest. */
const overloadedDelayMs = 500

/** Simulates upload and encoding. A returned `Media` is a snapshot; `get` returns the current state. */
export class Studio {
  readonly #options: StudioOptions
  readonly #records: RecentItems<Media>
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #closed = false

  constructor(options: StudioOptions) {
    const { maxRecords, changes } = options
    this.#options = options
    this.#records = new RecentItems({
      name: 'media',
      hasEnded: ({ state }) => state !== 'encoding',
      maxUnfinished: maxRecords,
      maxEnded: maxRecords,
      onChange: (id) => changes.notify({ kind: 'media', id }),
    })
  }

  /**
   * Uploads a media item. Emits its first event at once; the others follow.
   * @param input validated here: may come from outside
   * @throws WebhookError `invalid_option`; `overloaded` if too many media items are unfinished or the first event cannot
   * be sent; `closing` after `close`
   */
  add(input: MediaInput = {}): Media {
    if (this.#closed) throw new WebhookError('closing', 'the emulator is closed')
    const { clock, newId, userId } = this.#options
    const properties = readMediaInput(input)
    this.#records.checkRoom()
    const media: Media = {
      id: newId(),
      userId,
      ...properties,
      createdAt: toDate(clock()),
      timeline: makeLifecycle(properties).map((event) => ({ ...event, sendingIds: [] })),
      state: 'encoding',
    }
    return this.#emit(media)
  }

  get(id: string): Media | undefined {
    return this.#records.get(id)
  }

  /** Lists the kept media items, newest first. */
  list(): readonly Media[] {
    return this.#records.list()
  }

  /** Resolves once every media item has finished or failed. */
  async idle(): Promise<void> {
    if (!this.#closed) await this.#records.idle()
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#records.resolveIdle()
  }

  #emit(media: Media): Media {
    const index = media.timeline.findIndex(({ emittedAt }) => emittedAt === undefined)
    const isLast = index === media.timeline.length - 1
    const event = makeLifecycle(media)[index] as LifecycleEvent
    const payload = makePayload(media, event, this.#options.clock())
    const entry = { ...event, emittedAt: payload.emitted_at, sendingIds: this.#options.emit(payload) }
    const emitted: Media = {
      ...media,
      timeline: media.timeline.with(index, entry),
      state: isLast ? (media.fails ? 'failed' : 'finished') : 'encoding',
    }
    this.#records.put(emitted)
    if (!isLast) this.#emitLater(emitted)
    return emitted
  }

  /** @param minMs the minimum delay at any time scale */
  #emitLater(media: Media, minMs = 0): void {
    const delayMs = Math.max((Number(eventIntervalNs) / 1_000_000) * this.#options.timeScale, minMs)
    const resume = () => {
      this.#timers.delete(media.id)
      try {
        this.#emit(media)
      } catch (error) {
        if (!(error instanceof WebhookError && error.code === 'overloaded')) throw error
        this.#emitLater(media, overloadedDelayMs)
      }
    }
    this.#timers.set(media.id, setTimeout(resume, delayMs))
  }
}
