import { randomUUID } from 'node:crypto'
import { WebhookError } from '../../errors.ts'
import type { Payload } from '../../testing/payload.ts'
import type { Changes } from '../shared/changes.ts'
import { type Clock, dateOf } from '../shared/clock.ts'
import { Records } from '../shared/records.ts'
import { eventIntervalNs, type LifecycleEvent, lifecycleOf, payloadOf } from './lifecycle.ts'
import type { Media, MediaInput } from './media.ts'
import { readMediaInput } from './media.ts'

/** The options of {@link createStudio}. */
export interface StudioOptions {
  readonly clock: Clock
  /** Multiplies the pauses between the events of a media. */
  readonly timeScale: number
  /** Owns every media. */
  readonly userId: string
  /** How many media may be unfinished at once, and how many finished ones are kept. */
  readonly maxRecords: number
  readonly changes: Changes
  /**
   * Sends an event to whoever is subscribed, and returns the ids of the sendings. When it throws `overloaded`, nothing
   * must have been sent: the event is emitted again later.
   */
  readonly emit: (payload: Payload) => readonly string[]
}

/** Where media live, each at its own pace. A `Media` it returns is a picture of the moment; `get` has the next one. */
export interface Studio {
  /**
   * Uploads a media: its first event is emitted at once, the others follow.
   * @param input is checked here, so it may come from outside
   * @throws WebhookError `invalid_option`, `overloaded` when too many media are unfinished or the first event could not
   * be sent, `closing` after `close`
   */
  add(input?: MediaInput): Media
  get(id: string): Media | undefined
  /** Those that are kept, the newest one first. */
  list(): readonly Media[]
  /** Resolves when every media has come to its end. */
  idle(): Promise<void>
  /** Stops: no media emits anything more. */
  close(): void
}

/** However many media wait for room, their attempts must not slow everything else. */
const untilThereIsRoomMs = 500

export function createStudio(options: StudioOptions): Studio {
  return new PacedStudio(options)
}

class PacedStudio implements Studio {
  readonly #options: StudioOptions
  readonly #records: Records<Media>
  /** Until the next event of each media. */
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #closed = false

  constructor(options: StudioOptions) {
    const { maxRecords, changes } = options
    this.#options = options
    this.#records = new Records({
      name: 'media',
      isOver: ({ state }) => state !== 'encoding',
      maxUnfinished: maxRecords,
      maxOver: maxRecords,
      changed: (id) => changes.notify({ kind: 'media', id }),
    })
  }

  add(input: MediaInput = {}): Media {
    if (this.#closed) throw new WebhookError('closing', 'the emulator is closed')
    const { clock, userId } = this.#options
    const facts = readMediaInput(input)
    this.#records.checkRoom()
    const media: Media = {
      id: randomUUID(),
      userId,
      ...facts,
      createdAt: dateOf(clock()),
      timeline: lifecycleOf(facts).map((event) => ({ ...event, sendingIds: [] })),
      state: 'encoding',
    }
    return this.#emit(media)
  }

  get(id: string): Media | undefined {
    return this.#records.get(id)
  }

  list(): readonly Media[] {
    return this.#records.list()
  }

  async idle(): Promise<void> {
    if (!this.#closed) await this.#records.idle()
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#records.letGo()
  }

  /** Emits the next event of a media, and sets the timer for the one after it. */
  #emit(media: Media): Media {
    const index = media.timeline.findIndex(({ emittedAt }) => emittedAt === undefined)
    const isLast = index === media.timeline.length - 1
    const event = lifecycleOf(media)[index] as LifecycleEvent
    const payload = payloadOf(media, event, this.#options.clock())
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

  /** @param leastMs how long it waits at least, however fast the time */
  #emitLater(media: Media, leastMs = 0): void {
    const pauseMs = Math.max((Number(eventIntervalNs) / 1_000_000) * this.#options.timeScale, leastMs)
    const resume = () => {
      this.#timers.delete(media.id)
      try {
        this.#emit(media)
      } catch (error) {
        if (!(error instanceof WebhookError && error.code === 'overloaded')) throw error
        this.#emitLater(media, untilThereIsRoomMs)
      }
    }
    this.#timers.set(media.id, setTimeout(resume, pauseMs))
  }
}
