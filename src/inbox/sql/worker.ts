import { WebhookError } from '../../errors.ts'
import type { Countdown } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import { within } from '../../internal/timers.ts'
import { logReleased, stopRun } from '../engine/attempts.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import type { RunningAttempt } from './attempt.ts'
import { Claiming } from './claiming.ts'
import type { ClaimedLane, Database, Media, RunningEvents } from './database.ts'
import { HeldLane } from './lane.ts'
import { LaneRunner } from './lane-runner.ts'
import { Lease } from './lease.ts'
import { Settling } from './settling.ts'

export interface SqlWorkerOptions {
  readonly database: Database
  readonly host: InboxHost
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** Maximum number of attempts a process publishes, longest first. */
const maxPublished = 100

/** Longest wait for the database on close, after the handlers have ended (ms). */
const releaseMs = 1_000

/** Handles events in this process: claims lanes, runs their events in order, records the results, releases the lanes. */
export class SqlWorker {
  readonly #database: Database
  readonly #logger: Logger
  readonly #options: SqlWorkerOptions
  readonly #lanes = new Map<Media, HeldLane>()
  readonly #settling: Settling
  readonly #runner: LaneRunner
  readonly #claiming: Claiming
  readonly lease: Lease
  readonly #waits = new Map<string, () => void>()
  #state: 'starting' | 'open' | 'stopped' = 'starting'

  constructor(options: SqlWorkerOptions) {
    const { database, host, concurrency, leaseMs, ttlMs } = options
    const { shared } = database.steps
    this.#options = options
    this.#database = database
    this.#logger = host.logger
    const readHandlers = shared && (() => database.run(shared.handlers()))
    const lost = (lane: HeldLane) => this.#lostLane(lane)
    this.#settling = new Settling({
      database,
      host,
      lost,
      released: (lane, readyInMs) => this.#released(lane, readyInMs),
      answered: () => this.#claiming.roomed(),
    })
    this.#runner = new LaneRunner({
      database,
      host,
      concurrency,
      ttlMs,
      lost,
      owed: readHandlers && new OwedHandlers(host, ttlMs, readHandlers),
      settling: this.#settling,
      holds: () => this.lease.holds,
      ended: (key) => this.endWait(key),
    })
    const claimed = (lanes: readonly ClaimedLane[], owner: string) => this.#claimed(lanes, owner)
    this.#claiming = new Claiming({
      database,
      host,
      concurrency,
      claimed,
      owner: () => this.lease.owner,
      mayClaim: () => this.#state === 'open' && this.lease.holds && !this.#runner.isPaused,
      yields: () => this.#yields,
      held: () => this.#held(),
      unknown: () => this.lease.lookForUnknown(),
    })
    this.lease = new Lease({
      database,
      host,
      leaseMs,
      claimed,
      running: () => this.#longRunning(leaseMs / 3),
      known: () => [...this.#lanes.keys()],
      room: () => 2 * concurrency - this.#held().lanes,
      exclusively: (run) => this.#claiming.exclusively(run),
      cutOff: () => this.#cutOff(),
      renewed: () => {
        this.#runner.renewed()
        this.#claiming.roomed()
      },
      lost: () => this.#lost(),
      ready: () => this.wake(),
    })
  }

  async start(): Promise<void> {
    await this.lease.join()
    if (this.#state === 'stopped') return
    this.#state = 'open'
    this.lease.start()
    this.wake()
    this.lease.claimAwaited()
  }

  /** Looks for lanes. */
  wake(): void {
    this.#claiming.wake()
  }

  /** Publishes new handlers. Call it before another process can claim an event that owes them. */
  publish(): Promise<void> | undefined {
    return this.lease.hasNewHandlers ? this.lease.publish() : undefined
  }

  #held(): { lanes: number; marked: number } {
    let [lanes, marked] = [0, 0]
    for (const lane of this.#lanes.values()) {
      if (lane.state === 'leaving' || (lane.state === 'parked' && !this.#runner.alone.waiting.includes(lane))) continue
      lanes++
      if (lane.marks > 0) marked++
    }
    return { lanes, marked }
  }

  /** True while an aborted handler still runs here: its lane would only be released again, so others should claim first. */
  get #yields(): boolean {
    return this.#database.steps.shared !== undefined && this.#runner.hasStragglers
  }

  #claimed(lanes: readonly ClaimedLane[], owner: string): void {
    for (const claimed of lanes) {
      const lane = new HeldLane(claimed, owner)
      // It lost its lease or closed meanwhile: nobody waits for these lanes.
      if (owner !== this.lease.owner || this.#state === 'stopped') continue
      this.#lanes.set(lane.media, lane)
      if (this.#runner.isPaused) this.#runner.release(lane, 'the inbox is paused or closing')
      else this.#runner.add(lane)
    }
  }

  #released(lane: HeldLane, readyInMs: number): void {
    if (this.#lanes.get(lane.media) === lane) this.#lanes.delete(lane.media)
    if (lane.awaits) this.#database.notify?.('awaited')
    if (readyInMs === Number.POSITIVE_INFINITY) return
    if (readyInMs > 0) {
      // Tell the others when the lane is ready: this process delays its own claim, so that they get it.
      if (this.#yields) this.#database.notify?.('due')
      return this.#claiming.readyIn(readyInMs)
    }
    this.#claiming.wake()
    const isForOthers = this.#state === 'stopped' || this.#held().lanes >= this.#options.concurrency
    if (isForOthers) this.#database.notify?.('new')
  }

  #lostLane(lane: HeldLane): void {
    if (lane.state === 'lost') return
    // After a settle without an answer, it may be recorded.
    if (lane.hasUnrecorded && !lane.mayBeSettled)
      this.#logger.warn({}, 'the lease of an event was lost before its result was recorded')
    if (this.#lanes.get(lane.media) === lane) this.#lanes.delete(lane.media)
    this.#runner.abort(lane, true, leaseLost())
    this.lease.lookForUnknown()
  }

  /** The lease expired by this process's clock. What has ended may still be recorded, if nobody took the lanes over. */
  #cutOff(): void {
    const { size } = this.#runner.attempts
    this.#logger.warn(
      { events: size },
      'this process could not renew its lease, so it stopped its handlers; check that it can reach its database',
    )
    this.#abortAll()
  }

  #abortAll(reason = leaseLost()): void {
    this.#runner.lanes.clear()
    for (const lane of this.#lanes.values()) {
      const isLost = !lane.hasUnrecorded
      if (isLost) this.#lanes.delete(lane.media)
      this.#runner.abort(lane, isLost, reason)
      this.#settling.add(lane)
    }
    this.lease.lookForUnknown()
  }

  #lost(): void {
    const { size } = this.#runner.attempts
    this.#logger.warn({ events: size }, 'this process lost its lease; other processes may handle its events')
    this.#abortAll()
  }

  /** Sends the ends of attempts, in this call. */
  flush(): void {
    this.#settling.flush()
  }

  /** Stops at once and for good: another process has the storage. */
  storageLost(reason: string): void {
    this.stopStarting()
    this.#abortAll(leaseLost(reason))
    this.#settling.stop()
  }

  // Operators.

  get hasPauses(): boolean {
    return this.#runner.hasPauses
  }

  /** Applies the pauses. While the whole inbox is paused, this process claims nothing, and releases what has not started. */
  applyPauses(pauses: readonly Pause[]): void {
    this.#runner.pause(new Set(pauses.map(({ handler }) => handler)))
    if (!this.#runner.isPaused) return this.wake()
    this.#runner.lanes.clear()
    this.#releaseUnstarted()
  }

  /** Other processes may have slots for these lanes. */
  #releaseUnstarted(): void {
    for (const lane of this.#lanes.values())
      if (this.#runner.isUnstarted(lane)) this.#runner.release(lane, 'the inbox is paused or closing')
  }

  get owner(): string | undefined {
    return this.lease.owner
  }

  /** Attempts that run now, or whose end is not recorded yet, by event id. */
  running(): ReadonlyMap<number, RunningAttempt> {
    const { attempts, recording } = this.#runner
    const running = [...recording, ...attempts.values()].filter(({ since }) => since !== undefined)
    return new Map(running.map((attempt) => [attempt.id, attempt.shown]))
  }

  /** Stops the running handler of an event. False if none runs. */
  stop(key: string): boolean {
    return stopRun(this.#runner.attempts.get(key))
  }

  stopId(id: string): void {
    stopRun([...this.#runner.attempts.values()].find((attempt) => `${attempt.id}` === id))
  }

  #longRunning(ms: number): RunningEvents {
    const before = Date.now() - ms
    const long = [...this.running()].filter(([, { startedAt }]) => startedAt.getTime() <= before)
    if (long.length === 0) return undefined
    const longest = long.sort(([, a], [, b]) => a.startedAt.getTime() - b.startedAt.getTime()).slice(0, maxPublished)
    return Object.fromEntries(longest.map(([id, { startedAt }]) => [id, startedAt.getTime()]))
  }

  /**
   * Resolves once this process has handled an event, retries included, or no longer holds it. `undefined` if somebody waits
   * for it already. Call {@link endWait} if it isn't stored.
   */
  handled(key: string): Promise<void> | undefined {
    if (this.#waits.has(key)) return undefined
    return new Promise((resolve) => this.#waits.set(key, resolve))
  }

  endWait(key: string): void {
    this.#waits.get(key)?.()
    this.#waits.delete(key)
  }

  // Closing.

  stopStarting(): void {
    this.#state = 'stopped'
    this.#claiming.stop()
    this.#runner.stop()
    this.#releaseUnstarted()
  }

  /** Waits for running events. Call `stopStarting` before and `release` after. */
  async finish(left: Countdown): Promise<void> {
    await within(left(), this.#claiming.idle(), () => {})
    await within(left(), this.#runner.idle(), () => {})
    await within(left(), this.#settling.idle(), () => {})
  }

  /** Stops what still runs and releases all lanes. Returns the events that were running. */
  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = [...this.#runner.attempts.values()].map(
      ({ accepted, since }): UnfinishedEvent => ({ ...accepted, state: since === undefined ? 'waiting' : 'running' }),
    )
    const closing = new WebhookError('closing', 'the inbox is closing')
    // An attempt that is cut off on purpose has crashed nothing.
    const uncounted = Promise.all(
      [...this.#runner.attempts.values()].map((attempt) => this.#runner.counts.uncount(attempt)),
    )
    for (const lane of this.#lanes.values())
      if (!this.#runner.isUnstarted(lane)) this.#runner.abort(lane, !lane.hasUnrecorded, closing)
    for (const key of this.#waits.keys()) this.endWait(key)
    // If the database is unreachable, the lease just expires.
    await within(left(releaseMs), this.#release(uncounted), () => {}).catch(() => {})
    if (this.#database.steps.shared) logReleased(unfinished, this.#logger)
    this.#settling.stop()
    return [...unfinished, ...this.#unrecorded()]
  }

  /** Attempts that ended without a record. */
  #unrecorded(): readonly UnfinishedEvent[] {
    const unrecorded = [...this.#runner.recording]
    const keys = unrecorded.map(({ key }) => key)
    const message = 'the inbox closed before it could record the end of these events; their handlers may run again'
    if (keys.length > 0) this.#logger.warn({ keys }, message)
    return unrecorded.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  async #release(uncounted: Promise<unknown>): Promise<void> {
    await this.lease.stop()
    await uncounted
    await this.#settling.idle()
    await this.lease.leave()
  }
}

const leaseLost = (message = 'the lease of the event was lost'): WebhookError => new WebhookError('lease_lost', message)
