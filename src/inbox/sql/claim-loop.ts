import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { maxWaitMs, type Timer, unref } from '../../internal/timers.ts'
import type { EventStore } from './store.ts'

/** Delay after a failed claim (ms). */
export const claimRetryMs = 100

/** Transient failures in a row before one is logged, and the minimum time between two logs (ms). */
const failuresBeforeLog = 3
const logIntervalMs = 60_000

export interface ClaimLoopOptions {
  readonly store: Pick<EventStore, 'isTransient' | 'pollMs'>
  readonly logger: Logger
  readonly mayClaim: () => boolean
  /** Claims once. Resolves with the delay before the next claim (ms). `undefined`: there is no room for events. */
  readonly claim: () => Promise<number> | undefined
  /** True if a claim whose delay is over can't find anything. */
  readonly canSkip: () => boolean
  /** Called when a delay is over. */
  readonly wake: () => void
}

/** Claims again and again while awake, one claim at a time. Otherwise waits for a wake-up or the end of a delay. */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions
  readonly #outage = new OutageLog()
  #isAwake = false
  #claiming: Promise<void> | undefined
  #failures = 0
  #loggedAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #isStopped = false

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  get isAwake(): boolean {
    return this.#isAwake
  }

  wake(): void {
    this.#isAwake = true
    if (!this.#options.mayClaim() || this.#claiming !== undefined) return
    this.#claiming = this.#run().then(() => {
      this.#claiming = undefined
      if (this.#isAwake) this.wake()
    })
  }

  /** Makes another claim follow the current one, or start with the next wake-up. */
  again(): void {
    this.#isAwake = true
  }

  /** Resolves once no claim is in flight. */
  async idle(): Promise<void> {
    await this.#claiming
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    while (this.#isAwake && this.#options.mayClaim()) {
      this.#isAwake = false
      const claimed = this.#options.claim()
      if (claimed === undefined) break
      try {
        this.#wakeIn(await claimed)
        this.#outage.worked()
        this.#failures = 0
      } catch (error) {
        this.#logFailure(error)
        this.#wakeIn(claimRetryMs)
      }
    }
  }

  #logFailure(error: unknown): void {
    const { store, logger } = this.#options
    if (this.#isStopped) return
    if (!store.isTransient(error))
      return this.#outage.failed(() => logger.error({ err: error }, 'the inbox could not claim events'))
    // A claim that always times out looks transient too.
    if (++this.#failures < failuresBeforeLog || performance.now() < this.#loggedAt + logIntervalMs) return
    this.#loggedAt = performance.now()
    logger.warn({ err: error }, 'the inbox could not claim events and will retry')
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer)
    const { store, canSkip, wake } = this.#options
    const { pollMs } = store
    const soonestMs = Math.min(ms, pollMs)
    if (soonestMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => (canSkip() ? this.#wakeIn(pollMs) : wake()), Math.min(soonestMs, maxWaitMs))
    unref(this.#timer)
  }
}
