import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { ActivityObserver } from '../inbox.ts'
import type { ActivityMinute } from '../reading.ts'

/** The upper bounds of the durations that are counted, in ms. */
export const durationBounds = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
] as const

/** The interval at which activity is written to the storage of an inbox, in ms. */
const pauseMs = 5_000

/** The time for which activity is kept, in ms. */
export const activityKeptMs = 86_400_000

const minuteMs = 60_000

/** Returns the minute of a time in ms, both counted since the epoch. */
export const minuteOf = (timeMs: number): number => Math.floor(timeMs / minuteMs)

/**
 * The numbers of a minute: accepted, duplicates, rejected, handled, failed, the durations of acknowledgements and of
 * handling, ignored.
 */
type MinuteNumbers = number[]

/** A minute, counted since the epoch, and the numbers of a process in it: a JSON array that inboxes store as it is. */
export type StoredMinute = readonly [minute: number, numbers: string]

/** The storage of an inbox's activity. Each process has numbers of its own for each minute. */
export interface ActivityStorage {
  /** Writes minutes of this process, and replaces its earlier numbers for them. */
  write(minutes: readonly StoredMinute[]): Promise<unknown>
  /** Reads the minutes of all processes, from a minute on. */
  read(first: number): MaybePromise<readonly StoredMinute[]>
  /** Called when the regular write has failed. What it had is written the next time. */
  failed?(error: unknown): void
}

/** The activity of an inbox: counts what its receiver does, and writes it to the storage every 5 s. */
export class StoredActivity {
  readonly recorder = new ActivityRecorder()
  readonly #storage: ActivityStorage
  #timer: Timer | undefined
  #writing: Promise<void> | undefined

  constructor(storage: ActivityStorage) {
    this.#storage = storage
  }

  start(): void {
    this.#timer = setInterval(() => void this.#writeRegularly(), pauseMs)
    unref(this.#timer)
  }

  async #writeRegularly(): Promise<void> {
    // If the storage hangs, a write can take longer than the pause.
    if (this.#writing !== undefined) return
    try {
      await this.write()
    } catch (error) {
      this.#storage.failed?.(error)
    }
  }

  /** Ends the regular writes. */
  stop(): void {
    clearInterval(this.#timer)
  }

  /** Ends the regular writes, and writes the remaining changes. */
  finish(): Promise<void> {
    this.stop()
    return this.write()
  }

  /** Writes the changes. A second call waits for the first, so that no number replaces a later one. */
  async write(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing.catch(() => {})
    this.#writing = this.recorder.writeChanged((minutes) => this.#storage.write(minutes))
    try {
      await this.#writing
    } finally {
      this.#writing = undefined
    }
  }

  /** Writes the changes, and returns the minutes of all processes since the given one. */
  async since(since: Date): Promise<readonly ActivityMinute[]> {
    await this.write()
    return toActivity(await this.#storage.read(minuteOf(since.getTime())))
  }
}

const [accepted, duplicates, rejected, handled, failed, acknowledgement] = [0, 1, 2, 3, 4, 5]
const durations = durationBounds.length + 1
const handling = acknowledgement + durations
const ignored = handling + durations
const length = ignored + 1

/** Counts the work of a receiver, minute by minute, and forgets it after 24 h. */
export class ActivityRecorder implements ActivityObserver {
  readonly #minutes = new Map<number, MinuteNumbers>()
  readonly #changed = new Set<number>()
  /**
   * The minute that changed last, until it is taken. It is looked up once, since each event is counted several times.
   */
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

  /** Returns the numbers of this minute, for a change. */
  #numbers(): MinuteNumbers {
    const minute = minuteOf(Date.now())
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

  /** Writes the changed minutes, each with its numbers since its start. If that fails, the next call writes them. */
  async writeChanged(write: ActivityStorage['write']): Promise<void> {
    const changed = [...this.#changed]
    this.#changed.clear()
    this.#current = undefined
    if (changed.length === 0) return
    try {
      await write(changed.flatMap((minute) => this.#stored(minute)))
    } catch (error) {
      for (const minute of changed) this.#changed.add(minute)
      throw error
    }
  }

  /** Returns the minutes since the given one. */
  since(since: Date): readonly ActivityMinute[] {
    const minutes = [...this.#minutes.keys()].filter((minute) => minute >= minuteOf(since.getTime()))
    return toActivity(minutes.flatMap((minute) => this.#stored(minute)))
  }

  /** Returns nothing if the minute was forgotten. */
  #stored(minute: number): StoredMinute[] {
    const numbers = this.#minutes.get(minute)
    return numbers === undefined ? [] : [[minute, JSON.stringify(numbers)]]
  }
}

function bucketOf(durationMs: number): number {
  let index = 0
  while (index < durationBounds.length && durationMs > (durationBounds[index] as number)) index++
  return index
}

/** Makes the activity of stored minutes, oldest first. The numbers of a minute can come from several processes. */
export function toActivity(stored: readonly StoredMinute[]): ActivityMinute[] {
  const minutes = new Map<number, MinuteNumbers>()
  for (const [minute, text] of stored) {
    const numbers = JSON.parse(text) as MinuteNumbers
    const sum = minutes.get(minute) ?? new Array<number>(length).fill(0)
    minutes.set(
      minute,
      sum.map((number, index) => number + (numbers[index] ?? 0)),
    )
  }
  return [...minutes].sort(([a], [b]) => a - b).map(([minute, numbers]) => toMinute(minute, numbers))
}

const toMinute = (minute: number, numbers: MinuteNumbers): ActivityMinute => ({
  startedAt: new Date(minute * minuteMs),
  accepted: numbers[accepted] ?? 0,
  duplicates: numbers[duplicates] ?? 0,
  ignored: numbers[ignored] ?? 0,
  rejected: numbers[rejected] ?? 0,
  handled: numbers[handled] ?? 0,
  failed: numbers[failed] ?? 0,
  acknowledgement: numbers.slice(acknowledgement, handling),
  handling: numbers.slice(handling, ignored),
})
