import { type Timer, unref } from '../../internal/timers.ts'
import {
  ActivityRecorder,
  activityKeptMs,
  activityPauseMs,
  type MinuteNumbers,
  toActivity,
} from '../operations/activity.ts'
import type { ActivityMinute } from '../reading.ts'
import type { EventQueue } from './queue.ts'
import { readActivityScript } from './reading-scripts.ts'
import { writeActivityScript } from './scripts.ts'

const minuteMs = 60_000

/** The time for which Redis keeps a minute, in ms: an hour longer than it is shown, since clocks differ. */
const ttlMs = activityKeptMs + 3_600_000

/** Records what this process does, and writes it to Redis, where each process has a field of its own for each minute. */
export class BullmqActivity {
  readonly recorder = new ActivityRecorder()
  readonly #queue: EventQueue
  readonly #process = crypto.randomUUID()
  readonly #timer: Timer

  constructor(queue: EventQueue) {
    this.#queue = queue
    // What an outage keeps from being written stays, and the inbox logs the outage.
    this.#timer = setInterval(() => void this.#write().catch(() => {}), activityPauseMs)
    unref(this.#timer)
  }

  #write(): Promise<void> {
    return this.recorder.writeChanged((minutes) => {
      // A step that is repeated later writes the numbers of that time.
      const texts = () =>
        minutes.flatMap(([startedAt, numbers]) => [startedAt.getTime() / minuteMs, JSON.stringify(numbers)])
      return this.#queue.reach(() => this.#queue.run(writeActivityScript, this.#process, ttlMs, ...texts()))
    })
  }

  /** Writes what is unwritten, and returns the minutes of all processes. */
  async since(since: Date): Promise<readonly ActivityMinute[]> {
    await this.#write()
    return readActivity(this.#queue, since)
  }

  /** Writes the rest. */
  close(): Promise<void> {
    clearInterval(this.#timer)
    return this.#write()
  }
}

/** Reads the minutes of all processes since then. */
export async function readActivity(queue: EventQueue, since: Date): Promise<readonly ActivityMinute[]> {
  const now = Date.now()
  const first = Math.floor(Math.max(since.getTime(), now - activityKeptMs) / minuteMs)
  // The clocks of other processes can be ahead.
  const last = Math.floor(now / minuteMs) + 1
  const found = await queue.reach(() => queue.run<(number | string)[]>(readActivityScript, first, last))
  const minutes: [Date, MinuteNumbers][] = []
  for (let i = 0; i < found.length; i += 2)
    minutes.push([new Date(Number(found[i]) * minuteMs), JSON.parse(String(found[i + 1]))])
  return toActivity(minutes)
}
