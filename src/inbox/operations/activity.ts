import { aDate, checkOptions, required } from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { ActivityObserver } from '../inbox.ts'
import type { ActivityMinute } from '../reading.ts'

/** The upper bounds of the durations that are counted, in ms. */
export const durationBounds = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
] as const

/** The interval at which activity is written to the storage of an inbox, in ms. */
const writeIntervalMs = 5_000

/** The time for which activity is kept, in ms. */
export const activityKeptMs = 86_400_000

const minuteMs = 60_000

/** Returns the minute of a time in ms, both counted since the epoch. */
export const minuteOf = (timeMs: number): number => Math.floor(timeMs / minuteMs)

/** Counts by name: a reason or a handler. */
type ByName = Record<string, number>

/**
 * The numbers of a minute: accepted, duplicates, rejected, handled, failed, the durations of acknowledgements and of
 * handling, ignored. The counts by name are stored behind them.
 */
interface MinuteNumbers {
  readonly counts: number[]
  readonly rejectedBy: ByName
  readonly failedBy: ByName
}

/** Maximum number of handlers that a process counts by name in a minute. */
const maxNamedHandlers = 20

const others = 'others'

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

/** @throws WebhookError `invalid_option` */
export function firstMinute(since: Date): number {
  checkOptions('activity', { since }, { since: required(aDate) })
  return minuteOf(since.getTime())
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
    this.#timer = setInterval(() => void this.#writeRegularly(), writeIntervalMs)
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
    return toActivity(await this.#storage.read(firstMinute(since)))
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
    if (status !== 200) return this.#reject(outcome)
    if (outcome === 'test') return
    if (outcome === 'ignored') return this.#count(ignored)
    this.#count(outcome === 'duplicate' ? duplicates : accepted, acknowledgement + bucketOf(durationMs))
  }

  attempt({ outcome, sinceReceivedMs }: { outcome: string; sinceReceivedMs: number }): void {
    if (outcome === 'stopped' || outcome === 'released') return
    if (outcome !== 'handled') return this.#count(failed)
    this.#count(handled, handling + bucketOf(sinceReceivedMs))
  }

  #reject(reason: string): void {
    this.#count(rejected)
    increase(this.#numbers().rejectedBy, reason)
  }

  failed(handler: string): void {
    const { failedBy } = this.#numbers()
    const isNamed = failedBy[handler] !== undefined || Object.keys(failedBy).length < maxNamedHandlers
    increase(failedBy, isNamed ? handler : others)
  }

  #count(index: number, duration?: number): void {
    const { counts } = this.#numbers()
    counts[index] = (counts[index] as number) + 1
    if (duration !== undefined) counts[duration] = (counts[duration] as number) + 1
  }

  /** Returns the numbers of this minute, for a change. */
  #numbers(): MinuteNumbers {
    const minute = minuteOf(Date.now())
    if (this.#current?.minute === minute) return this.#current.numbers
    let numbers = this.#minutes.get(minute)
    if (numbers === undefined) {
      numbers = emptyNumbers()
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
    const minutes = [...this.#minutes.keys()].filter((minute) => minute >= firstMinute(since))
    return toActivity(minutes.flatMap((minute) => this.#stored(minute)))
  }

  /** Returns nothing if the minute was forgotten. */
  #stored(minute: number): StoredMinute[] {
    const numbers = this.#minutes.get(minute)
    return numbers === undefined
      ? []
      : [[minute, JSON.stringify([...numbers.counts, numbers.rejectedBy, numbers.failedBy])]]
  }
}

const emptyNumbers = (): MinuteNumbers => ({
  counts: new Array<number>(length).fill(0),
  // A handler can have any name, that of a member of every object included.
  rejectedBy: Object.create(null),
  failedBy: Object.create(null),
})

function increase(by: ByName, name: string, count = 1): void {
  by[name] = (by[name] ?? 0) + count
}

/** Adds counts by name to others. */
export function addByName(sum: ByName, more: Readonly<ByName> = {}): void {
  for (const [name, count] of Object.entries(more)) increase(sum, name, count)
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
    const numbers: unknown[] = JSON.parse(text)
    const sum = minutes.get(minute) ?? emptyNumbers()
    for (const index of sum.counts.keys()) sum.counts[index] = (sum.counts[index] ?? 0) + Number(numbers[index] ?? 0)
    const [rejectedBy, failedBy] = numbers.slice(length) as ByName[]
    addByName(sum.rejectedBy, rejectedBy)
    addByName(sum.failedBy, failedBy)
    minutes.set(minute, sum)
  }
  return [...minutes].sort(([a], [b]) => a - b).map(([minute, numbers]) => toMinute(minute, numbers))
}

const toMinute = (minute: number, { counts, rejectedBy, failedBy }: MinuteNumbers): ActivityMinute => ({
  startedAt: new Date(minute * minuteMs),
  accepted: counts[accepted] ?? 0,
  duplicates: counts[duplicates] ?? 0,
  ignored: counts[ignored] ?? 0,
  rejected: counts[rejected] ?? 0,
  handled: counts[handled] ?? 0,
  failed: counts[failed] ?? 0,
  rejectedBy: { ...rejectedBy },
  failedBy: { ...failedBy },
  acknowledgement: counts.slice(acknowledgement, handling),
  handling: counts.slice(handling, ignored),
})
