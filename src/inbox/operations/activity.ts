import type { ActivityObserver } from '../inbox.ts'
import type { ActivityMinute } from '../reading.ts'

/** The upper bounds of the durations that are counted, in ms. */
export const durationBounds = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
] as const

/** The interval at which activity is written, in ms. */
export const activityPauseMs = 5_000

/** The time for which activity is kept, in ms. */
export const activityKeptMs = 86_400_000

const minuteMs = 60_000

/**
 * The numbers of a minute: accepted, duplicates, rejected, handled, failed, then the durations of acknowledgements and of
 * handling, then ignored. Inboxes store them as a JSON array.
 */
export type MinuteNumbers = number[]

const [accepted, duplicates, rejected, handled, failed, acknowledgement] = [0, 1, 2, 3, 4, 5]
const durations = durationBounds.length + 1
const handling = acknowledgement + durations
const ignored = handling + durations
const length = ignored + 1

/** Writes minutes, whose numbers go on counting meanwhile. */
export type WriteMinutes = (
  minutes: readonly (readonly [startedAt: Date, numbers: MinuteNumbers])[],
) => Promise<unknown>

/** Counts what a receiver does, minute by minute, and forgets it after 24 h. */
export class ActivityRecorder implements ActivityObserver {
  readonly #minutes = new Map<number, MinuteNumbers>()
  readonly #changed = new Set<number>()
  #writing: Promise<void> | undefined
  /** The minute that changed last, until it is taken. It is looked up once, since there are several counts an event. */
  #current: { readonly minute: number; readonly numbers: MinuteNumbers } | undefined

  delivery({ outcome, status, durationMs }: { outcome: string; status: number; durationMs: number }): void {
    if (status !== 200) return this.#count(rejected)
    if (outcome === 'test') return
    if (outcome === 'ignored') return this.#count(ignored)
    this.#count(outcome === 'duplicate' ? duplicates : accepted, acknowledgement + bucketOf(durationMs))
  }

  attempt({ outcome, sinceReceivedMs }: { outcome: string; sinceReceivedMs: number }): void {
    if (outcome === 'stopped' || outcome === 'released') return
    if (outcome !== 'handled') return this.#count(failed)
    this.#count(handled, handling + bucketOf(sinceReceivedMs))
  }

  #count(index: number, duration?: number): void {
    const numbers = this.#numbers()
    numbers[index] = (numbers[index] as number) + 1
    if (duration !== undefined) numbers[duration] = (numbers[duration] as number) + 1
  }

  /** Returns the numbers of this minute, which change now. */
  #numbers(): MinuteNumbers {
    const minute = Math.floor(Date.now() / minuteMs)
    if (this.#current?.minute === minute) return this.#current.numbers
    let numbers = this.#minutes.get(minute)
    if (numbers === undefined) {
      numbers = new Array<number>(length).fill(0)
      this.#minutes.set(minute, numbers)
      this.#forget(minute - activityKeptMs / minuteMs)
    }
    this.#changed.add(minute)
    this.#current = { minute, numbers }
    return numbers
  }

  #forget(before: number): void {
    for (const minute of this.#minutes.keys()) if (minute < before) this.#minutes.delete(minute)
  }

  /**
   * Writes the minutes that have changed, each with its numbers since its start. What cannot be
   * written is written the next time. A second call waits for the first, so that no number replaces a later one.
   */
  async writeChanged(write: WriteMinutes): Promise<void> {
    while (this.#writing !== undefined) await this.#writing.catch(() => {})
    this.#writing = this.#write(write)
    try {
      await this.#writing
    } finally {
      this.#writing = undefined
    }
  }

  async #write(write: WriteMinutes): Promise<void> {
    const changed = [...this.#changed]
    this.#changed.clear()
    this.#current = undefined
    if (changed.length === 0) return
    try {
      await write(changed.flatMap((minute) => this.#entry(minute)))
    } catch (error) {
      for (const minute of changed) this.#changed.add(minute)
      throw error
    }
  }

  /** Returns the minutes since then. */
  since(since: Date): readonly ActivityMinute[] {
    const minutes = [...this.#minutes.keys()].filter((minute) => (minute + 1) * minuteMs > since.getTime())
    return toActivity(minutes.flatMap((minute) => this.#entry(minute)))
  }

  #entry(minute: number): [Date, MinuteNumbers][] {
    const numbers = this.#minutes.get(minute)
    return numbers === undefined ? [] : [[new Date(minute * minuteMs), numbers]]
  }
}

function bucketOf(durationMs: number): number {
  let index = 0
  while (index < durationBounds.length && durationMs > (durationBounds[index] as number)) index++
  return index
}

/** Makes the activity of stored numbers, oldest first. The numbers of a minute can come from several processes. */
export function toActivity(stored: Iterable<readonly [startedAt: Date, numbers: MinuteNumbers]>): ActivityMinute[] {
  const minutes = new Map<number, MinuteNumbers>()
  for (const [startedAt, numbers] of stored) {
    const sum = minutes.get(startedAt.getTime()) ?? new Array<number>(length).fill(0)
    minutes.set(
      startedAt.getTime(),
      sum.map((number, index) => number + (numbers[index] ?? 0)),
    )
  }
  return [...minutes].sort(([a], [b]) => a - b).map(([startedAt, numbers]) => toMinute(new Date(startedAt), numbers))
}

const toMinute = (startedAt: Date, numbers: MinuteNumbers): ActivityMinute => ({
  startedAt,
  accepted: numbers[accepted] ?? 0,
  duplicates: numbers[duplicates] ?? 0,
  ignored: numbers[ignored] ?? 0,
  rejected: numbers[rejected] ?? 0,
  handled: numbers[handled] ?? 0,
  failed: numbers[failed] ?? 0,
  acknowledgement: numbers.slice(acknowledgement, handling),
  handling: numbers.slice(handling, ignored),
})
