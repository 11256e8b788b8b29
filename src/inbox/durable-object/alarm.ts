import type { Logger } from '../../internal/logger.ts'
import { sleep } from '../../internal/timers.ts'
import type { ObjectStorage } from '../../storage/durable-objects.ts'

/** Time after which an object that has ended with work left is woken (ms). */
const guardMs = 5_000

/** Longest time that one alarm waits for work (ms). The platform gives it 15 minutes. */
const maxMs = 600_000

/** Delay between two looks at the work (ms). */
const lookMs = 100

/** The alarm waits for what is due within this time (ms). */
const soonMs = 1_000

export interface ObjectAlarmOptions {
  readonly storage: Pick<ObjectStorage, 'setAlarm' | 'deleteAlarm'>
  readonly logger: Logger
  /** Time at which an event can go on (ms since the epoch), now at the earliest. Infinity if none can. */
  readonly workAt: () => number
  /** Time of the next deadline, which can have passed. Infinity if nothing is expected. */
  readonly deadlineAt: () => number
  /** Makes events of what is overdue. */
  readonly handOver: () => Promise<void>
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

  /** An event was stored. Brings the alarm forward. */
  guard(): void {
    // Each delivery comes here, and only a deadline can be sooner.
    const isGuarded = this.#at !== undefined && this.#at <= Date.now() + guardMs
    const at = isGuarded ? this.#options.deadlineAt() : this.#next()
    if (at < (this.#at ?? Number.POSITIVE_INFINITY)) this.#set(at)
  }

  /** Sets the alarm for what is left. */
  update(): void {
    const at = this.#next()
    if (at === Number.POSITIVE_INFINITY) this.#clear()
    else if (at !== this.#at) this.#set(at)
  }

  #next(): number {
    const now = Date.now()
    const { workAt, deadlineAt } = this.#options
    const nextWorkAt = workAt()
    return Math.min(nextWorkAt <= now + soonMs ? now + guardMs : nextWorkAt, deadlineAt())
  }

  /** Waits until what is due has been handled. */
  async ring(hasStopped: () => boolean): Promise<void> {
    const { workAt, deadlineAt, handOver } = this.#options
    // First of all: the platform gives up an alarm that fails a few times, and a crash is a failure.
    this.#set(Date.now() + guardMs)
    const endsAt = performance.now() + maxMs
    while (!hasStopped() && performance.now() < endsAt) {
      await handOver()
      if (Math.min(workAt(), deadlineAt()) > Date.now() + soonMs) break
      await sleep(lookMs)
    }
    if (!hasStopped()) this.update()
  }

  #set(at: number): void {
    this.#at = at
    this.#options.storage.setAlarm(Math.ceil(at)).catch((error) => this.#failed(error))
  }

  #clear(): void {
    if (this.#at === undefined) return
    this.#at = undefined
    this.#options.storage.deleteAlarm().catch((error) => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#at = undefined
    this.#options.logger.error({ err: error }, 'the inbox could not set its alarm')
  }
}
