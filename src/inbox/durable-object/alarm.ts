import type { Logger } from '../../internal/logger.ts'
import type { ObjectStorage } from '../../internal/storage/durable-objects.ts'
import { sleep } from '../../internal/timers.ts'

/** Delay until an object that ended with work left is woken (ms). */
const guardMs = 5_000

/** Longest wait of one alarm for its work (ms). The platform allows 15 minutes. */
const maxMs = 600_000

const lookMs = 100

/** The alarm stays for work due within this time (ms). */
const soonMs = 1_000

export interface ObjectAlarmOptions {
  readonly storage: Pick<ObjectStorage, 'setAlarm' | 'deleteAlarm'>
  readonly logger: Logger
  /** When an event can continue (ms since the epoch), now at the earliest. Infinity if none can. */
  readonly workAt: () => number
  /** Next deadline, possibly past (ms since the epoch). Infinity if nothing is expected. */
  readonly deadlineAt: () => number
  readonly acceptDue: () => Promise<void>
}

/**
 * The alarm of an inbox object, set while events are left or expected. It keeps the object in memory while events are
 * handled, and wakes it for a retry, for a deadline or after a crash. `setAlarm` commits with the other writes of its
 * turn, so no event is stored without an alarm.
 */
export class ObjectAlarm {
  readonly #options: ObjectAlarmOptions
  #at: number | undefined

  constructor(options: ObjectAlarmOptions) {
    this.#options = options
  }

  /** Call when an event was stored. Brings the alarm forward. */
  guard(): void {
    // Every delivery comes here. If an alarm is near, only a deadline can be sooner.
    const isGuarded = this.#at !== undefined && this.#at <= Date.now() + guardMs
    const at = isGuarded ? this.#options.deadlineAt() : this.#next()
    if (at < (this.#at ?? Number.POSITIVE_INFINITY)) this.#set(at)
  }

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

  /** Resolves once the work that is due has been handled. */
  async ring(hasStopped: () => boolean): Promise<void> {
    const { workAt, deadlineAt, acceptDue } = this.#options
    // First of all: the platform drops an alarm after a few failures, and a crash counts as one.
    this.#set(Date.now() + guardMs)
    const endsAt = performance.now() + maxMs
    while (!hasStopped() && performance.now() < endsAt) {
      await acceptDue()
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
