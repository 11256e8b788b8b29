import type { Logger } from '../../internal/logger.ts'
import { sleep } from '../../internal/timers.ts'
import type { ObjectStorage } from '../../storage/durable-objects.ts'

/** Time after which an object that has ended with work left is woken (ms). */
const guardMs = 5_000

/** Longest time that one alarm waits for work (ms). The platform gives it 15 minutes. */
const longestMs = 600_000

/** Delay between two looks at the work (ms). */
const lookMs = 100

/** The alarm waits for what is due within this time (ms). */
const soonMs = 1_000

export interface ObjectAlarmOptions {
  readonly storage: Pick<ObjectStorage, 'setAlarm' | 'deleteAlarm'>
  readonly logger: Logger
  /** Time at which there is something to do (ms since the epoch), now at the earliest. Infinity if nothing is left. */
  readonly dueAt: () => number
  /** Does what is due and does not start by itself. */
  readonly work: () => Promise<void>
}

/**
 * The alarm of an object that is an inbox. While events are left or expected, one is set: it keeps the object in memory while
 * events are handled, wakes it for a retry or a deadline, and wakes it after a crash. `setAlarm` belongs to the writes of its
 * turn, so an event is never stored without its alarm.
 */
export class ObjectAlarm {
  readonly #options: ObjectAlarmOptions
  /** The time it is set for (ms since the epoch). */
  #at: number | undefined

  constructor(options: ObjectAlarmOptions) {
    this.#options = options
  }

  /** Brings the alarm forward for new work. */
  guard(): void {
    const at = this.#next()
    if (at !== undefined && (this.#at === undefined || this.#at > at)) this.#set(at)
  }

  /** Sets the alarm for what is left. */
  update(): void {
    const at = this.#next()
    if (at !== undefined) this.#set(at)
    else if (this.#at !== undefined) {
      this.#at = undefined
      this.#options.storage.deleteAlarm().catch((error) => this.#failed(error))
    }
  }

  #next(): number | undefined {
    const now = Date.now()
    const dueAt = this.#options.dueAt()
    if (dueAt === Number.POSITIVE_INFINITY) return undefined
    return dueAt <= now + soonMs ? now + guardMs : dueAt
  }

  /** Waits until what is due has been handled. */
  async ring(hasStopped: () => boolean): Promise<void> {
    // First of all: the platform gives up an alarm that fails a few times, and a crash is a failure.
    this.#set(Date.now() + guardMs)
    const endsAt = performance.now() + longestMs
    while (!hasStopped() && performance.now() < endsAt) {
      await this.#options.work()
      if (this.#options.dueAt() > Date.now() + soonMs) break
      await sleep(lookMs)
    }
    if (!hasStopped()) this.update()
  }

  #set(at: number): void {
    this.#at = at
    this.#options.storage.setAlarm(Math.ceil(at)).catch((error) => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#at = undefined
    this.#options.logger.error({ err: error }, 'the inbox could not set its alarm')
  }
}
