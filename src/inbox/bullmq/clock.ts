import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { everyMinute } from './connection.ts'

/** Longest acceptable round trip (ms), and readings tried. Half the round trip is the error. */
const exactMs = 20
const maxReads = 3

/** Clock skew above which this process warns (ms). BullMQ starts retries by our clock. */
const maxMs = 5_000

/** Redis time, so that processes with different clocks agree on what is due. */
export class RedisClock {
  readonly #client: Redis
  readonly #logger: Logger | undefined
  /** Redis time minus `performance.now()`. */
  #offsetMs: number | undefined
  #hasWarned = false

  constructor(client: Redis, logger: Logger | undefined) {
    this.#client = client
    this.#logger = logger
    everyMinute(client, () => this.sync())
  }

  /** Whole ms. The local clock until Redis has answered. */
  now(): number {
    return this.#offsetMs === undefined ? Date.now() : Math.round(performance.now() + this.#offsetMs)
  }

  get isKnown(): boolean {
    return this.#offsetMs !== undefined
  }

  /** Local clock minus Redis time (ms). */
  get aheadMs(): number {
    return Date.now() - this.now()
  }

  async sync(): Promise<void> {
    let tookMs = Number.POSITIVE_INFINITY
    for (let reads = 0; reads < maxReads && tookMs > exactMs; reads++) {
      const sentAt = performance.now()
      // Refusals and outages are logged elsewhere.
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
        `this process's clock is ${aheadMs} ms ahead of Redis: retries start early or late. Synchronize it (NTP)`,
      )
    this.#hasWarned = isOff
  }
}
