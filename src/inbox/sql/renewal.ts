import type { Logger } from '../../internal/logger.ts'
import { FailureLog, PeriodicTask } from './periodic-task.ts'
import type { SharedLease } from './store.ts'

export interface RenewalOptions {
  readonly lease: SharedLease
  readonly isTransient: (error: unknown) => boolean
  readonly logger: Logger
  readonly renewed: () => void
  readonly lost: () => Promise<void>
  readonly tookOver: () => void
}

/** Renews the lease of this process, and takes over from processes whose lease expired. */
export class Renewal {
  readonly #options: RenewalOptions
  readonly #task: PeriodicTask
  #renewedAt = performance.now()
  /** True if the last renewal was late and let the other processes renew first. */
  #gaveGrace = false
  #takingOver: Promise<void> | undefined

  constructor(options: RenewalOptions) {
    const { lease, logger, isTransient } = options
    this.#options = options
    const log = new FailureLog(logger, isTransient)
    this.#task = new PeriodicTask(() => this.#renew(), Math.min(lease.leaseMs / 3, 1_000), log)
  }

  start(): void {
    this.#renewedAt = performance.now()
    this.#options.renewed()
    this.#task.start(0)
  }

  async #renew(): Promise<number> {
    const { lease, lost, renewed } = this.#options
    const { leaseMs } = lease
    const sentAt = performance.now()
    const { isLost, hasDead } = await lease.renew()
    if (isLost) await lost()
    renewed()
    // After a database outage every process is late. Give the others until the next renewal. Once only: if every
    // renewal is late, the database is just slow.
    const isLate = performance.now() - this.#renewedAt > leaseMs / 2
    const givesGrace = isLate && !this.#gaveGrace
    this.#gaveGrace = givesGrace
    this.#renewedAt = performance.now()
    // Not awaited: a takeover reads many events, and our own lease needs renewing meanwhile.
    if (hasDead && !givesGrace) this.#takingOver ??= this.#takeOver()
    // The lease runs from when the renewal was sent, however slow the database is.
    return Math.max(0, leaseMs / 3 - (performance.now() - sentAt))
  }

  async #takeOver(): Promise<void> {
    const { lease, isTransient, logger, tookOver } = this.#options
    try {
      await lease.takeOver()
      tookOver()
    } catch (error) {
      if (!isTransient(error)) logger.error({ err: error }, 'the inbox could not take over events')
    }
    this.#takingOver = undefined
  }

  async stop(): Promise<void> {
    await this.#task.stop()
    await this.#takingOver
  }
}
