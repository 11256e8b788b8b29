import { LeaseClock } from '../../internal/lease-clock.ts'
import { crypto } from '../../internal/realm.ts'
import type { HandlerName, InboxHost } from '../inbox.ts'
import { AwaitedClaims } from './awaited-claims.ts'
import type { ClaimedLane, Database, Media, RunningEvents, SharedSteps } from './database.ts'
import { FailureLog, PeriodicTask } from './periodic-task.ts'

export interface LeaseOptions {
  readonly database: Database
  readonly host: Pick<InboxHost, 'handlers' | 'logger'>
  readonly leaseMs: number
  readonly running: () => RunningEvents
  /** Lanes that this process has, or still has to settle. */
  readonly known: () => readonly Media[]
  /** How many lanes there is room for. */
  readonly room: () => number
  /** Takes over claimed lanes. */
  readonly claimed: (lanes: readonly ClaimedLane[], owner: string) => void
  /** Runs a step that claims lanes while no other does. */
  readonly exclusively: <T>(run: () => Promise<T>) => Promise<T>
  /** The lease expired by this process's clock. */
  readonly cutOff: () => void
  readonly renewed: () => void
  /** The lease is lost for good, and with it all lanes. */
  readonly lost: () => void
  /** A lane is ready. */
  readonly ready: () => void
}

/**
 * The lease of this process: a row that it renews, by the database's clock. After its expiry, which is final, others free its
 * lanes, and it can record nothing. Cut off from the database, it goes by its own clock. In a database of one process there
 * is none: the process has what it has.
 */
export class Lease {
  readonly #options: LeaseOptions
  readonly #clock: LeaseClock
  readonly #renewing: PeriodicTask | undefined
  /** Runs after each renewal. Apart: a look that takes long must not hold up the next renewal. */
  readonly #looking: PeriodicTask | undefined
  readonly #awaitedClaims: AwaitedClaims | undefined
  #owner: string = crypto.randomUUID()
  /** Handlers that are published. */
  #published: readonly HandlerName[] = []
  #hasJoined = false
  /** Until when lanes may be ours without our knowing, after a lost answer (`performance.now()`, ms). */
  #unknownUntil = Number.NEGATIVE_INFINITY
  #renewedAt = 0
  /** True until the next renewal: nothing is taken over. */
  #givesGrace = false
  #takingOver: Promise<void> | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
    const { database, host, leaseMs } = options
    this.#clock = new LeaseClock(leaseMs, () => options.cutOff())
    const { shared } = database.steps
    if (shared === undefined) return
    this.#awaitedClaims = new AwaitedClaims({
      ...options,
      shared,
      owner: () => this.#owner,
      holds: () => this.holds,
      failed: () => this.lookForUnknown(),
    })
    const task = (run: () => Promise<number>) =>
      new PeriodicTask(run, Math.min(leaseMs / 3, 1_000), new FailureLog(host.logger, database))
    this.#renewing = task(() => this.#renew())
    this.#looking = task(() => this.#lookAround())
  }

  get owner(): string {
    return this.#owner
  }

  /** True while this process may start something. */
  get holds(): boolean {
    const { database } = this.#options
    if (!this.#hasJoined) return false
    return database.steps.shared === undefined ? database.isOurs !== false : !this.#clock.isOver
  }

  /** True if handlers were added or removed since they were published. */
  get hasNewHandlers(): boolean {
    return this.#hasJoined && this.#renewing !== undefined && this.#published !== this.#options.host.handlers()
  }

  async join(): Promise<void> {
    const { database, host } = this.#options
    this.#clock.stop()
    this.#owner = crypto.randomUUID()
    const handlers = host.handlers()
    const sentAt = performance.now()
    await database.run(database.steps.join(this.#owner, handlers))
    this.#published = handlers
    this.#hasJoined = true
    if (this.#renewing !== undefined) this.#clock.renewed(sentAt)
    database.notify?.('awaited')
  }

  start(): void {
    this.#renewedAt = performance.now()
    this.#looking?.start(Number.POSITIVE_INFINITY)
    this.#renewing?.start(0)
  }

  /** Looks for unknown lanes soon: a settle or a claim got no answer, or a strange one. */
  lookForUnknown(): void {
    this.#unknownUntil = performance.now() + 2 * this.#options.leaseMs
    this.#renewing?.soon(0)
  }

  async publish(): Promise<void> {
    const { database, host } = this.#options
    const handlers = host.handlers()
    const { shared } = database.steps
    if (shared === undefined) return
    await database.run(shared.publish(this.#owner, handlers, this.#published))
    this.#published = handlers
    database.notify?.('awaited')
    this.claimAwaited()
  }

  async #renew(): Promise<number> {
    const { database, leaseMs, running, renewed } = this.#options
    const { shared } = database.steps
    if (shared === undefined) return Number.POSITIVE_INFINITY
    if (this.hasNewHandlers) await this.publish()
    const sentAt = performance.now()
    if (await database.run(shared.renew(this.#owner, running()))) {
      this.#clock.renewed(sentAt)
      this.#hasJoined = true
    } else await this.#lost()
    renewed()
    this.#givesGrace = this.#isLate && !this.#givesGrace
    this.#renewedAt = performance.now()
    this.#looking?.soon(0)
    // The lease runs from when the renewal was sent, however slow the database is.
    return Math.max(0, leaseMs / 3 - (performance.now() - sentAt))
  }

  async #lookAround(): Promise<number> {
    const { database, known, ready } = this.#options
    const { shared } = database.steps
    if (shared !== undefined && this.#hasJoined) {
      const { hasExpired, hasReady, hasAwaited, owned } = await database.run(shared.lookAround(this.#owner))
      // Not awaited: a takeover may wait for locks.
      if (hasExpired && !this.#isLate && !this.#givesGrace) this.#takingOver ??= this.#takeOver(shared)
      if (owned > known().length || performance.now() < this.#unknownUntil) await this.#adopt(shared)
      if (hasAwaited) this.claimAwaited()
      if (hasReady) ready()
    }
    return Number.POSITIVE_INFINITY
  }

  /**
   * After an outage of the database every process is late, so the others get time until the next renewal. Once only: if
   * every renewal is late, the database is just slow.
   */
  get #isLate(): boolean {
    return performance.now() - this.#renewedAt > this.#options.leaseMs / 2
  }

  async #lost(): Promise<void> {
    // Before it joins again: nothing of the old owner may go on.
    this.#hasJoined = false
    this.#options.lost()
    await this.join()
    this.#options.ready()
  }

  async #takeOver(shared: SharedSteps): Promise<void> {
    const { database, host, ready } = this.#options
    host.logger.debug({}, 'frees the lanes of processes whose lease has expired')
    try {
      while (await database.run(shared.takeOver())) ready()
      database.notify?.('due')
      ready()
    } catch (error) {
      if (database.failure(error) === undefined)
        host.logger.error({ err: error }, 'the inbox could not take over events')
    }
    this.#takingOver = undefined
  }

  /** Takes in lanes that are ours but unknown: a claim without an answer may have committed, or commit much later. */
  async #adopt(shared: SharedSteps): Promise<void> {
    const { database, host, exclusively, known, claimed } = this.#options
    const adopt = async () => {
      const owner = this.#owner
      const lanes = await database.run(shared.adopt(owner, known()))
      host.logger.debug({ lanes: lanes.length }, 'looked for lanes of claims without an answer')
      claimed(lanes, owner)
      const taken = known()
      return lanes.some(({ media }) => taken.includes(media))
    }
    while (await exclusively(adopt));
  }

  /** Claims lanes with events that await our handlers, or handlers that were removed. */
  claimAwaited(): void {
    this.#awaitedClaims?.start()
  }

  async stop(): Promise<void> {
    // Not a takeover that waits for locks: leaving is more urgent.
    await Promise.all([this.#renewing?.stop(), this.#looking?.stop()])
  }

  /** Ends the lease, so that the next process gets the lanes at once. */
  async leave(): Promise<void> {
    const { database } = this.#options
    this.#clock.stop()
    if (!this.#hasJoined) return
    this.#hasJoined = false
    await database.run(database.steps.leave(this.#owner, this.#published))
    database.notify?.('due')
    if (this.#published.length > 0) database.notify?.('awaited')
  }
}
