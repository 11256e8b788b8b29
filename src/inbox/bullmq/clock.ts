import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { everyMinute } from './connection.ts'

/** A look that takes longer (ms) is repeated, up to a number: the time may be wrong by half of that, on a busy machine. */
const exactMs = 20
const maxReads = 3

/** Difference to the clock of Redis above which this process warns (ms). BullMQ itself starts retries by our clock. */
const maxMs = 5_000

/** The time of Redis: processes whose clocks differ must agree on what is due. */
export class RedisClock {
  readonly #client: Redis
  readonly #logger: Logger | undefined
  /** The time of Redis less `performance.now()`. */
  #offsetMs: number | undefined
  #hasWarned = false

  constructor(client: Redis, logger: Logger | undefined) {
    this.#client = client
    this.#logger = logger
    everyMinute(client, () => this.sync())
  }

  /** Whole ms. Our own clock, until Redis has told its time. */
  now(): number {
    return this.#offsetMs === undefined ? Date.now() : Math.round(performance.now() + this.#offsetMs)
  }

  get isKnown(): boolean {
    return this.#offsetMs !== undefined
  }

  /** How far our own clock is ahead of that of Redis (ms). */
  get aheadMs(): number {
    return Date.now() - this.now()
  }

  async sync(): Promise<void> {
    let tookMs = Number.POSITIVE_INFINITY
    for (let reads = 0; reads < maxReads && tookMs > exactMs; reads++) {
      const sentAt = performance.now()
      // A refusal is logged elsewhere, and so is an outage.
      const time = await this.#client.time().catch(() => undefined)
      if (time === undefined) break
      const answeredAt = performance.now()
      if (answeredAt - sentAt >= tookMs) continue
      tookMs = answeredAt - sentAt
      const [seconds, micros] = time.map(Number) as [number, number]
      this.#offsetMs = seconds * 1_000 + micros / 1_000 - (sentAt + answeredAt) / 2
    }
    if (this.isKnown) this.#warn(this.aheadMs)
  }

  #warn(aheadMs: number): void {
    const isOff = Math.abs(aheadMs) > maxMs
    if (isOff && !this.#hasWarned)
      this.#logger?.warn(
        { aheadMs },
        `the clock of this process is ${aheadMs} ms ahead of that of Redis, so retries start early or late. Synchronise it (NTP)`,
      )
    this.#hasWarned = isOff
  }
}
