import { measure } from '../../internal/maybe-promise.ts'
import { maxWaitMs, type Timer, unref } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import type { ClaimedLanes, Database } from './database.ts'
import { FailureLog } from './periodic-task.ts'

/** Delay after a failed claim (ms). */
const retryMs = 100

/** Minimum time between claims that wait for a lane (ms). */
const waitIntervalMs = 200

/** Longest time between two claims where no signals arrive (ms). With them, each renewal of the lease looks around. */
const pollMs = 250

/** How much later than others this process looks while it yields: others may only poll (ms). */
const yieldMs = pollMs + 50

/** Lanes to hold at most because they end fast. */
const maxLanes = 128

/** Time in which lanes end that are handled fast (ms). */
const fastMs = 100

/** Marked lanes that this process has at a time: one runs, one is next. */
const maxMarked = 2

export interface ClaimingOptions {
  readonly database: Pick<Database, 'run' | 'steps' | 'failure' | 'isListening'>
  readonly host: Pick<InboxHost, 'logger' | 'measured'>
  readonly concurrency: number
  readonly owner: () => string
  readonly mayClaim: () => boolean
  /** True while other processes are to claim first what gets ready. */
  readonly yields: () => boolean
  /** Lanes that this process has and that are not about to leave, and how many of them are marked. */
  readonly held: () => { readonly lanes: number; readonly marked: number }
  /** Takes over claimed lanes, unless the process that claimed them is gone. */
  readonly claimed: (lanes: ClaimedLanes['lanes'], owner: string) => void
  /** Called after a claim whose answer was lost: lanes may be ours without our knowing. */
  readonly unknown: () => void
}

/** Claims lanes while there is room for them, one claim at a time. Otherwise waits for a wake-up or the end of a delay. */
export class Claiming {
  readonly #options: ClaimingOptions
  readonly #log: FailureLog
  /** How many lanes to hold. Grows while they end faster than claims bring them. */
  #size: number
  /** When a claim last brought all that there was room for. */
  #claimedAt = Number.NEGATIVE_INFINITY
  #isAwake = false
  #isRunning = false
  /** The last step that claims. One at a time: an adoption beside a claim would hand out its lanes twice. */
  #last: Promise<unknown> = Promise.resolve()
  #timer: Timer | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #isHeldUp = false
  /** True if there may be more marked lanes than the last claim was to bring. */
  #leftMarked = false
  #waitedAt = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(options: ClaimingOptions) {
    this.#options = options
    this.#log = new FailureLog(options.host.logger, options.database, 'the inbox could not claim events')
    this.#size = 2 * options.concurrency
  }

  /** Claims now, or right after the claim under way. */
  wake(): void {
    this.#isAwake = true
    if (this.#isRunning || this.#isStopped || !this.#options.mayClaim()) return
    this.#isRunning = true
    void this.#run().finally(() => {
      this.#isRunning = false
    })
  }

  /** Claims when `ms` have passed, at the latest. */
  wakeIn(ms: number): void {
    const at = performance.now() + ms
    if (at >= this.#wakesAt || this.#isStopped) return
    clearTimeout(this.#timer)
    this.#wakesAt = at
    this.#timer = setTimeout(
      () => {
        this.#wakesAt = Number.POSITIVE_INFINITY
        this.wake()
      },
      Math.min(Math.max(ms, 0), maxWaitMs),
    )
    unref(this.#timer)
  }

  /** Claims when a lane gets ready in `ms`, or later while others are to have it. */
  readyIn(ms: number): void {
    this.wakeIn(ms + (this.#options.yields() ? yieldMs : 0))
  }

  /** Claims again if the last one left something: call it when there is room. */
  roomed(): void {
    if (this.#isAwake || (this.#leftMarked && this.#options.held().marked < maxMarked)) this.wake()
  }

  /** Resolves once no claim is in flight. */
  async idle(): Promise<void> {
    await this.#last
  }

  /** Runs a step that claims lanes, and takes its lanes in, while no other does. */
  exclusively<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run)
    this.#last = result.catch(() => {})
    return result
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    while (this.#isAwake && !this.#isStopped && this.#options.mayClaim()) {
      const { lanes, marked } = this.#options.held()
      const room = this.#size - lanes
      // Enough to do. Small claims would cost a statement each.
      if (room < Math.max(1, this.#size / 4)) return
      this.#isAwake = false
      try {
        await this.exclusively(() => this.#claim(room, Math.max(0, maxMarked - marked)))
        this.#log.succeeded()
      } catch (error) {
        this.#options.unknown()
        if (!this.#isStopped) this.#log.failed(error)
        this.wakeIn(retryMs)
        return
      }
    }
  }

  async #claim(room: number, marked: number): Promise<void> {
    const { database, host, owner: ownerOf, claimed } = this.#options
    const owner = ownerOf()
    const waits = this.#isHeldUp && performance.now() - this.#waitedAt > waitIntervalMs
    if (waits) this.#waitedAt = performance.now()
    const step = database.steps.claim({ owner, lanes: room, marked, waits })
    const { lanes, nextInMs, isHeldUp } = await measure(host.measured, 'claim', () => database.run(step))
    this.#isHeldUp = isHeldUp
    const isFull = lanes.length >= room
    this.#resize(isFull)
    const found = { lanes: lanes.length, events: lanes.flatMap(({ events }) => events).length, room, nextInMs }
    host.logger.debug(found, lanes.length > 0 ? 'claimed lanes' : 'found no lane to claim')
    claimed(lanes, owner)
    if (isFull) this.#isAwake = true
    this.#leftMarked = lanes.filter(({ crashes }) => crashes > 0).length === marked
    if (isHeldUp) this.wakeIn(Math.max(0, this.#waitedAt + waitIntervalMs - performance.now()))
    this.readyIn(Math.min(nextInMs, this.#pollMs))
  }

  /** Claims more at a time while what a claim brings ends in no time, and fewer once it does not, or there are fewer. */
  #resize(isFull: boolean): void {
    const { concurrency, held } = this.#options
    const isFast = held().lanes === 0 && performance.now() - this.#claimedAt < fastMs
    this.#claimedAt = isFull ? performance.now() : Number.NEGATIVE_INFINITY
    const size =
      isFull && isFast ? 2 * this.#size : isFull && held().lanes < this.#size / 2 ? this.#size : this.#size / 2
    this.#size = Math.max(2 * concurrency, Math.min(maxLanes, size))
  }

  get #pollMs(): number {
    const { database } = this.#options
    return database.steps.shared === undefined || database.isListening ? Number.POSITIVE_INFINITY : pollMs
  }
}
