import { WebhookError } from '../../errors.ts'
import { type DeadResult, maxCrashes } from '../engine/attempts.ts'
import type { OwedHandlers } from '../engine/owed-handlers.ts'
import type { AttemptResult, InboxHost } from '../inbox.ts'
import { Lanes } from '../lanes.ts'
import { Alone } from './alone.ts'
import { type AttemptWorker, SqlAttempt } from './attempt.ts'
import { CrashCounts } from './crash-counts.ts'
import type { Database, StoredEvent } from './database.ts'
import { decideEnd, notMade, type SettledEnd } from './ends.ts'
import type { HeldLane } from './lane.ts'
import { maxUnrecorded, type Settling } from './settling.ts'

/** How long a lane rests while a handler of it that was given up still runs (ms). */
const stragglerMs = 1_000

export interface LaneRunnerOptions {
  readonly database: Database
  readonly host: InboxHost
  readonly concurrency: number
  readonly ttlMs: number
  readonly owed: OwedHandlers | undefined
  readonly settling: Pick<Settling, 'add'>
  readonly holds: () => boolean
  readonly lost: (lane: HeldLane) => void
  /** Called when an event has ended for good, or is not held any more. */
  readonly ended: (key: string) => void
}

/** Runs the events of lanes: each lane's one by one, lanes side by side. */
export class LaneRunner implements AttemptWorker {
  readonly database: Database
  readonly lanes: Lanes<HeldLane>
  readonly alone = new Alone((lane) => this.lanes.addNext(lane))
  /** Attempts under way, by event key. */
  readonly attempts = new Map<string, SqlAttempt>()
  /** Attempts that wait for the limit of a handler, and what makes them look again. */
  readonly #waiting = new Map<SqlAttempt, () => void>()
  /** Attempts that have ended, but whose end is not recorded yet. */
  readonly recording = new Set<SqlAttempt>()
  readonly #options: LaneRunnerOptions
  readonly counts: CrashCounts
  readonly #byLane = new Map<HeldLane, SqlAttempt>()
  /** Attempts that were given up, and whose handlers have not obeyed the abort yet. */
  readonly #stragglers = new Set<SqlAttempt>()
  /** Lanes whose turn came after the end of the lease, by this process's clock. */
  readonly #stalled = new Set<HeldLane>()
  #pausedHandlers: ReadonlySet<string | undefined> = new Set()
  #unrecorded = 0
  #isStopped = false
  #onIdle: (() => void) | undefined

  constructor(options: LaneRunnerOptions) {
    this.#options = options
    this.database = options.database
    const { database, host, lost } = options
    this.counts = new CrashCounts({ database, logger: host.logger, lost })
    this.lanes = new Lanes(options.concurrency, (lane) => this.#start(lane))
  }

  get holds(): boolean {
    return this.#options.holds()
  }

  /** True while a handler runs on that was aborted: another process can go on with its lane, this one can't. */
  get hasStragglers(): boolean {
    return this.#stragglers.size > 0
  }

  get isPaused(): boolean {
    return this.#pausedHandlers.has(undefined)
  }

  get hasPauses(): boolean {
    return this.#pausedHandlers.size > 0
  }

  isHandlerPaused(handler: string): boolean {
    return this.#pausedHandlers.has(handler)
  }

  pause(handlers: ReadonlySet<string | undefined>): void {
    this.#pausedHandlers = handlers
    this.#limit()
    // They may wait for a handler that is paused now.
    for (const lookAgain of this.#waiting.values()) lookAgain()
  }

  #limit(): void {
    // Attempts that were stopped while they waited for a limit need a turn to end.
    if (this.#isStopped) return this.lanes.limit(Number.POSITIVE_INFINITY)
    const isHeld = this.isPaused || this.#unrecorded >= maxUnrecorded
    this.lanes.limit(isHeld ? 0 : this.#options.concurrency)
  }

  /** Gives a lane its first turn. */
  add(lane: HeldLane): void {
    this.lanes.add(lane)
  }

  #start(lane: HeldLane): void {
    if (lane.isGone || this.#isStopped) return this.lanes.done()
    if (!this.holds) {
      this.#trace(lane, 'a lane waits: the lease of this process may have expired')
      this.#stalled.add(lane)
      return this.lanes.done()
    }
    const stored = this.#takeNext(lane)
    if (stored === undefined) return this.lanes.done()
    if (lane.isSuspect(stored) && !this.alone.enter(lane)) {
      this.#trace(lane, 'a lane waits: its event may have made a process crash, so it runs alone')
      lane.state = 'parked'
      return this.lanes.done()
    }
    lane.state = 'running'
    void this.#run(lane, stored)
  }

  /** The event whose turn it is. `undefined`: the lane goes back to the storage. */
  #takeNext(lane: HeldLane): StoredEvent | undefined {
    const { next } = lane
    const isBlocked = next !== undefined && next.dueInMs > 0
    const isRetryDue = next !== undefined && performance.now() >= lane.retryAt
    if (this.#hasStraggler(lane)) this.release(lane, 'an aborted handler of it still runs', stragglerMs)
    else if (next === undefined) this.release(lane, 'no event that was read is left')
    else if (isBlocked) this.release(lane, 'its next event is not due yet')
    else if (isRetryDue) this.release(lane, 'a retry in it is due')
    else return next
    return undefined
  }

  #hasStraggler({ media }: HeldLane): boolean {
    for (const straggler of this.#stragglers) if (straggler.media === media) return true
    return false
  }

  /** Releases a lane. `why`: for the log. */
  release(lane: HeldLane, why: string, restMs?: number): void {
    this.#trace(lane, `a lane goes back: ${why}`)
    lane.release(restMs)
    this.alone.leave(lane)
    this.#options.settling.add(lane)
  }

  /** Logs a decision about a lane, with the event whose turn it is. */
  #trace({ media, turn, next }: HeldLane, message: string): void {
    this.#options.host.logger.debug({ lane: media, turn, event: next?.id }, message)
  }

  async #run(lane: HeldLane, stored: StoredEvent): Promise<void> {
    const attempt = this.#attemptAt(lane, stored)
    if (attempt === undefined) return
    this.#byLane.set(lane, attempt)
    this.attempts.set(attempt.key, attempt)
    const unmade = await this.#before(attempt)
    if (unmade?.status === 'dead') this.#options.host.deadLettered?.(attempt.accepted, attempt.number)
    this.#ended(attempt, unmade ?? (await this.#options.host.handle(attempt.accepted, attempt)))
  }

  #attemptAt(lane: HeldLane, stored: StoredEvent): SqlAttempt | undefined {
    try {
      return new SqlAttempt(lane, stored, this)
    } catch (error) {
      const message = 'its stored event is damaged'
      this.#options.host.logger.error({ id: stored.id, err: error }, `an event became a dead letter: ${message}`)
      const failed = [{ number: stored.attempts, failures: [{ handler: 'none', message }], failedAt: new Date() }]
      this.#settle(lane, {
        ...{ media: lane.media, id: stored.id, kind: 'dead', attempts: stored.attempts, counts: false, delayMs: 0 },
        ...{ completed: [], failed: JSON.stringify(failed), late: stored.late, awaits: [] },
      })
      this.lanes.done()
      return undefined
    }
  }

  /** What comes before the handlers. Returns the result of an attempt that is not to be made. */
  async #before(attempt: SqlAttempt): Promise<AttemptResult | undefined> {
    const { host, owed } = this.#options
    const { lane, stored } = attempt
    // The crash that marked the lane was not counted.
    const isUncounted = stored.crashes === maxCrashes - 1 && lane.marks >= maxCrashes
    if (stored.crashes >= maxCrashes || isUncounted) {
      const message = `the process crashed ${maxCrashes} times while handling it`
      host.logger.error({ key: attempt.key }, `an event became a dead letter: ${message}`)
      return { status: 'dead', completed: attempt.completed, failures: [{ handler: 'none', message }] }
    }
    const dead: Promise<DeadResult | undefined> | undefined = owed?.check(attempt, attempt)
    const result = dead && (await dead)
    if (result !== undefined) return result
    if (lane.isSuspect(stored)) await this.counts.count(attempt)
    const { latestAt } = lane
    const time = attempt.accepted.event.emittedAt?.getTime()
    if (time !== undefined && !attempt.aborted) lane.latestAt = Math.max(latestAt ?? time, time)
    attempt.since = Date.now()
    // Another process has it, or a pause came meanwhile.
    if (attempt.aborted || this.isPaused) return notMade
    return undefined
  }

  // Limits.

  whileWaiting(attempt: SqlAttempt, turn: Promise<void>): Promise<void> | undefined {
    if (this.#isStopped || this.#waiting.size >= this.#options.concurrency) return undefined
    const paused = new Promise<void>((resolve) => this.#waiting.set(attempt, resolve))
    return this.#wait(attempt, Promise.race([turn, paused]))
  }

  async #wait(attempt: SqlAttempt, turn: Promise<void>): Promise<void> {
    const { lane, stored } = attempt
    attempt.since = undefined
    lane.state = 'parked'
    // What only waits is no suspect, and holds up none.
    const uncounted = attempt.isCounted ? this.counts.uncount(attempt).then(() => this.alone.leave(lane)) : undefined
    await this.lanes.whileWaiting(lane, turn)
    this.#waiting.delete(attempt)
    await uncounted
    const mayRun = () => !lane.isGone && !attempt.aborted
    while (mayRun() && lane.isSuspect(stored) && !this.alone.enter(lane)) await this.lanes.away(lane)
    if (mayRun() && lane.isSuspect(stored)) await this.counts.count(attempt)
    if (lane.state === 'parked') lane.state = 'running'
    attempt.since = Date.now()
  }

  // Ends.

  #ended(attempt: SqlAttempt, result: AttemptResult): void {
    const { lane } = attempt
    this.#byLane.delete(lane)
    if (this.attempts.get(attempt.key) === attempt) this.attempts.delete(attempt.key)
    this.#stragglers.delete(attempt)
    if (lane.isGone) this.alone.leave(lane)
    else this.#settleResult(attempt, result)
    this.lanes.done()
    if (this.attempts.size === 0) this.#onIdle?.()
  }

  #settleResult(attempt: SqlAttempt, result: AttemptResult): void {
    const { lane } = attempt
    const end: SettledEnd = decideEnd(attempt, result, this.#options)
    if (end.progress !== undefined) lane.progressed(end.progress, () => {})
    const { event, restMs } = end
    if (result.status === 'done') this.#options.owed?.ended(attempt, attempt)
    const goOn = () => {
      // It may have been lost or left meanwhile.
      if (lane.isGone) return this.alone.leave(lane)
      if (event === undefined) this.#backToLane(lane, restMs)
      else this.#settle(lane, event, attempt)
    }
    // It goes on here or elsewhere, and has crashed nothing.
    const isOpen = event === undefined || event.kind === 'release'
    if (isOpen && attempt.isCounted) void this.counts.uncount(attempt).then(goOn)
    else goOn()
  }

  /** Gives an event that was not tried its place back. */
  #backToLane(lane: HeldLane, restMs: number | undefined): void {
    this.alone.leave(lane)
    if (restMs !== undefined) return this.release(lane, 'a handler is at its limit', restMs)
    if (this.#isStopped || this.isPaused) return this.release(lane, 'the inbox is paused or closing')
    lane.state = 'ready'
    this.#options.settling.add(lane)
    this.lanes.add(lane)
  }

  #settle(lane: HeldLane, event: Parameters<HeldLane['ended']>[0], attempt?: SqlAttempt): void {
    this.#unrecorded++
    if (this.#unrecorded >= maxUnrecorded) this.#limit()
    const wasCounted = attempt?.isCounted === true
    if (attempt !== undefined) this.recording.add(attempt)
    lane.ended(event, () => this.#recorded(lane, wasCounted, event.kind === 'end' || event.kind === 'dead', attempt))
    const isHeldBack = this.#options.host.order === 'strict' && (event.kind === 'retry' || event.kind === 'release')
    if (isHeldBack || this.#isStopped || this.isPaused || lane.next === undefined) lane.release()
    else if (wasCounted) lane.state = 'settling'
    else {
      lane.state = 'ready'
      this.lanes.add(lane)
    }
    if (!wasCounted) this.alone.leave(lane)
    this.#options.settling.add(lane)
  }

  #recorded(lane: HeldLane, wasCounted: boolean, isOver: boolean, attempt: SqlAttempt | undefined): void {
    if (this.#unrecorded-- === maxUnrecorded) this.#limit()
    if (attempt !== undefined) this.recording.delete(attempt)
    if (attempt !== undefined && (isOver || lane.state === 'lost')) this.#options.ended(attempt.key)
    if (!wasCounted) return
    this.alone.leave(lane)
    if (lane.state !== 'settling') return
    lane.state = 'ready'
    this.lanes.add(lane)
  }

  progressed(attempt: SqlAttempt): Promise<void> {
    const { lane, stored, completed } = attempt
    if (lane.isGone) return Promise.resolve()
    return new Promise((resolve) => {
      const counts = { attempts: stored.attempts, counts: false, delayMs: 0, failed: undefined, awaits: [] }
      const { late } = attempt
      lane.progressed({ media: lane.media, id: stored.id, kind: 'progress', completed, late, ...counts }, resolve)
      this.#options.settling.add(lane)
    })
  }

  // What happens to lanes from outside.

  /** Aborts the attempt of a lane, and releases it. `isLost`: nothing of it can be recorded any more. */
  abort(lane: HeldLane, isLost: boolean, reason: WebhookError): void {
    const attempt = this.#byLane.get(lane)
    this.#trace(lane, isLost ? 'a lane is lost' : 'a lane is aborted')
    this.#stalled.delete(lane)
    if (attempt !== undefined) {
      this.#stragglers.add(attempt)
      this.#options.ended(attempt.key)
    } else this.alone.leave(lane)
    if (isLost) lane.lose()
    else lane.release()
    attempt?.abort(reason)
  }

  /** Goes on with lanes that waited for the lease to be renewed. */
  renewed(): void {
    for (const lane of this.#stalled) this.lanes.add(lane)
    this.#stalled.clear()
  }

  /** True if no attempt of the lane is under way: all of its events can go back. */
  isUnstarted(lane: HeldLane): boolean {
    return !this.#byLane.has(lane)
  }

  /** Starts nothing more. Attempts that wait for a limit end. */
  stop(): void {
    this.#isStopped = true
    this.lanes.clear()
    for (const attempt of this.#waiting.keys()) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    this.#limit()
  }

  /** Resolves once no attempt is left. */
  async idle(): Promise<void> {
    if (this.attempts.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }
}
