import { aDate, checkOptions, required } from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { ActivityObserver } from '../inbox.ts'
import type { ActivityMinute } from '../reading.ts'

/** Upper bounds of the duration histogram (ms). */
export const durationBounds = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
] as const

/** How often activity is written to storage (ms). */
const writeIntervalMs = 5_000

/** How long activity is kept (ms). */
export const activityKeptMs = 86_400_000

const minuteMs = 60_000

/** Minutes since the epoch. */
export const minuteOf = (timeMs: number): number => Math.floor(timeMs / minuteMs)

type ByName = Record<string, number>

/**
 * The counters of one minute: accepted, duplicates, rejected, handled, failed, acknowledgement and handling histograms,
 * ignored. Stored as one array, with the counts by name at its end.
 */
interface MinuteNumbers {
  readonly counts: number[]
  readonly rejectedBy: ByName
  readonly failedBy: ByName
}

/** Maximum handlers counted by name per minute and process. */
const maxNamedHandlers = 20

const others = 'others'

/** Minutes since the epoch, and the counters of one process as a JSON array, stored verbatim. */
export type StoredMinute = readonly [minute: number, numbers: string]

/** Stores activity, separately for each process and minute. */
export interface ActivityStorage {
  /** Upserts minutes of this process. */
  write(minutes: readonly StoredMinute[]): Promise<unknown>
  /** Reads the minutes of all processes, starting at `first`. */
  read(first: number): MaybePromise<readonly StoredMinute[]>
  /** Called when a periodic write fails. The next one includes its changes. */
  failed?(error: unknown): void
}

/** @throws WebhookError `invalid_option` */
export function firstMinute(since: Date): number {
  checkOptions('activity', { since }, { since: required(aDate) })
  return minuteOf(since.getTime())
}

/** Counts what the receiver does and writes it to storage every 5 s. */
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
    // A hanging storage can outlast the interval.
    if (this.#writing !== undefined) return
    try {
      await this.write()
    } catch (error) {
      this.#storage.failed?.(error)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  finish(): Promise<void> {
    this.stop()
    return this.write()
  }

  /** Flushes. Calls are serialised, or an older number could overwrite a newer one. */
  async write(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing.catch(() => {})
    this.#writing = this.recorder.writeChanged((minutes) => this.#storage.write(minutes))
    try {
      await this.#writing
    } finally {
      this.#writing = undefined
    }
  }

  /** Flushes, then reads the minutes of all processes since then. */
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

/** Counts a receiver's work by minute, for 24 h. */
export class ActivityRecorder implements ActivityObserver {
  readonly #minutes = new Map<number, MinuteNumbers>()
  readonly #changed = new Set<number>()
  /** The minute being counted, cached because each event counts several times. Reset by a write. */
  #current: { readonly minute: number; readonly numbers: MinuteNumbers } | undefined

  delivery({ outcome, status, durationMs }: { outcome: string; status: number; durationMs: number }): void {
    if (status !== 200) return this.#reject(outcome)
    if (outcome === 'test') return
    if (outcome === 'ignored') return this.#count(ignored)
    this.#count(outcome === 'duplicate' ? duplicates : accepted, acknowledgement + findBucket(durationMs))
  }

  attempt({ outcome, sinceReceivedMs }: { outcome: string; sinceReceivedMs: number }): void {
    if (outcome === 'stopped' || outcome === 'released') return
    if (outcome !== 'handled') return this.#count(failed)
    this.#count(handled, handling + findBucket(sinceReceivedMs))
  }

  #reject(reason: string): void {
    this.#count(rejected)
    increase(this.#numbers().rejectedBy, reason)
  }

  handling({ outcome, handler }: { outcome: string; handler: string }): void {
    if (outcome === 'handled' || outcome === 'stopped') return
    const { failedBy } = this.#numbers()
    increase(failedBy, handler in failedBy || Object.keys(failedBy).length < maxNamedHandlers ? handler : others)
  }

  #count(index: number, duration?: number): void {
    const { counts } = this.#numbers()
    counts[index] = (counts[index] as number) + 1
    if (duration !== undefined) counts[duration] = (counts[duration] as number) + 1
  }

  /** Returns the counters of the current minute and marks it changed. */
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

  /** Writes the changed minutes with their totals. After a failure, the next call writes them again. */
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

  since(since: Date): readonly ActivityMinute[] {
    const minutes = [...this.#minutes.keys()].filter((minute) => minute >= firstMinute(since))
    return toActivity(minutes.flatMap((minute) => this.#stored(minute)))
  }

  /** Empty if the minute was forgotten meanwhile. */
  #stored(minute: number): StoredMinute[] {
    const numbers = this.#minutes.get(minute)
    return numbers === undefined
      ? []
      : [[minute, JSON.stringify([...numbers.counts, numbers.rejectedBy, numbers.failedBy])]]
  }
}

const emptyNumbers = (): MinuteNumbers => ({
  counts: new Array<number>(length).fill(0),
  // No prototype: a handler may be called `constructor`.
  rejectedBy: Object.create(null),
  failedBy: Object.create(null),
})

function increase(by: ByName, name: string, count = 1): void {
  by[name] = (by[name] ?? 0) + count
}

export function addByName(sum: ByName, more: Readonly<ByName> = {}): void {
  for (const [name, count] of Object.entries(more)) increase(sum, name, count)
}

function findBucket(durationMs: number): number {
  let index = 0
  while (index < durationBounds.length && durationMs > (durationBounds[index] as number)) index++
  return index
}

/** Sums the stored minutes of all processes, oldest first. */
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
