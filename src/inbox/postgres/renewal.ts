import type { Logger } from '../../internal/logger.ts'
import { isUnreachable } from './database.ts'
import type { Lease } from './lease.ts'
import { Regularly } from './regularly.ts'

export interface RenewalOptions {
  readonly lease: Lease
  readonly leaseMs: number
  readonly logger: Logger
  /** Called when the lease was begun or renewed. */
  readonly renewed: () => void
  /** Called when the lease is over. */
  readonly lost: () => Promise<void>
  /** Called when events of other processes were taken over. */
  readonly tookOver: () => void
}

/** Renews the lease of this process, and takes over the events of processes without a valid lease. */
export class Renewal {
  readonly #options: RenewalOptions
  readonly #regularly: Regularly
  #renewedAt = performance.now()
  /** `true` if the last renewal was late, and gave the other processes time to renew theirs. */
  #gaveTime = false
  #takingOver: Promise<void> | undefined

  constructor(options: RenewalOptions) {
    this.#options = options
    this.#regularly = new Regularly(() => this.#renew(), Math.min(options.leaseMs / 3, 1_000), options.logger)
  }

  /** The lease has begun. */
  start(): void {
    this.#renewedAt = performance.now()
    this.#options.renewed()
    this.#regularly.start(0)
  }

  /** Returns the pause until the next renewal, in ms. */
  async #renew(): Promise<number> {
    const { lease, leaseMs, lost, renewed } = this.#options
    const sentAt = performance.now()
    const { isLost, hasDead } = await lease.renew()
    if (isLost) await lost()
    renewed()
    // After an outage of Postgres the other processes are also late with their renewal. They have time until the next
    // renewal: if every renewal is late, Postgres is only slow.
    const isLate = performance.now() - this.#renewedAt > leaseMs / 2
    const givesTime = isLate && !this.#gaveTime
    this.#gaveTime = givesTime
    this.#renewedAt = performance.now()
    // It is not awaited: it reads many events, and would keep this process from renewing its own lease.
    if (hasDead && !givesTime) this.#takingOver ??= this.#takeOver()
    // The lease counts from the sending of its renewal, however slow Postgres is.
    return Math.max(0, leaseMs / 3 - (performance.now() - sentAt))
  }

  async #takeOver(): Promise<void> {
    const { lease, logger, tookOver } = this.#options
    try {
      await lease.takeOver()
      tookOver()
    } catch (error) {
      if (!isUnreachable(error)) logger.error({ err: error }, 'the inbox could not take over events')
    }
    this.#takingOver = undefined
  }

  async stop(): Promise<void> {
    await this.#regularly.stop()
    await this.#takingOver
  }
}
