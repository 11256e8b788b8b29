import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { OwingAttempt } from '../engine/owed-handlers.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import type { FailedAttempt } from '../reading.ts'
import type { Database, HeldEvent, StoredEvent } from './database.ts'
import type { HeldLane } from './lane.ts'

/** What an attempt needs of the worker. */
export interface AttemptWorker {
  readonly database: Pick<Database, 'transaction'>
  /** False once the lease is over. */
  readonly holds: boolean
  isHandlerPaused(handler: string): boolean
  whileWaiting(attempt: SqlAttempt, turn: Promise<void>): Promise<void> | undefined
  progressed(attempt: SqlAttempt): Promise<void>
}

/** An attempt at the event whose turn it is in a lane. */
export class SqlAttempt extends LazyAbort implements Attempt, OwingAttempt, HeldEvent {
  readonly lane: HeldLane
  readonly stored: StoredEvent
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly failedAttempts: readonly FailedAttempt[]
  readonly owed: readonly string[] | undefined
  readonly late: boolean
  completed: readonly string[]
  run: Attempt['run']
  lacksHandlers = false
  isElsewhere = false
  missing: readonly string[] = []
  /** Set when its handlers begin or resume (ms since the epoch), `undefined` while it waits. */
  since: number | undefined
  /** True while it runs alone, counted: it may have made a process crash. */
  isCounted = false
  readonly #worker: AttemptWorker

  /** @throws if the stored event is damaged */
  constructor(lane: HeldLane, stored: StoredEvent, worker: AttemptWorker) {
    super()
    this.lane = lane
    this.stored = stored
    this.#worker = worker
    const event = reviveEvent(JSON.parse(stored.event) as MediaEvent)
    const time = event.emittedAt?.getTime()
    const isNew = stored.attempts === 0 && !stored.isRetry
    this.late = stored.late || (isNew && time !== undefined && time < (lane.latestAt ?? time))
    this.accepted = {
      event: this.late ? Object.freeze({ ...event, late: true }) : event,
      receivedAt: new Date(stored.receivedAt),
      trace: stored.trace === null ? undefined : JSON.parse(stored.trace),
    }
    this.number = stored.attempts + 1
    this.completed = JSON.parse(stored.completed)
    this.failedAttempts = reviveFailedAttempts(stored.failed === null ? [] : JSON.parse(stored.failed))
    this.owed = stored.owed === null ? undefined : JSON.parse(stored.owed)
  }

  get key(): string {
    return this.accepted.event.key
  }

  get id(): number {
    return this.stored.id
  }

  get owner(): string {
    return this.lane.owner
  }

  get media(): string {
    return this.lane.media
  }

  get turn(): number {
    return this.lane.turn
  }

  /** Checks the clock: after a suspension, callers may run before the timer that aborts attempts. */
  override get aborted(): boolean {
    return super.aborted || !this.#worker.holds
  }

  get failures(): Attempt['failures'] {
    return this.failedAttempts.at(-1)?.failures
  }

  get uncounted(): number {
    return this.failedAttempts.filter(({ number }) => number === this.number).length
  }

  get owesNothing(): boolean {
    return this.owed?.length === 0
  }

  isPaused(handler: string): boolean {
    return this.#worker.isHandlerPaused(handler)
  }

  whileWaiting(turn: Promise<void>): Promise<void> | undefined {
    return this.#worker.whileWaiting(this, turn)
  }

  succeeded(handler: string): Promise<void> {
    this.completed = [...this.completed, handler]
    return this.#worker.progressed(this)
  }

  readonly transaction: NonNullable<Attempt['transaction']> = (scope, run) =>
    this.#worker.database.transaction(this, scope, run)

  /** What pages show while it runs. */
  get shown(): RunningAttempt {
    const handler = this.run?.handler
    const { number } = this
    return { number, startedAt: new Date(this.since ?? Date.now()), ...(handler !== undefined && { handler }) }
  }
}

/** An attempt of this process, as pages show it. Once its end is recorded, the row has as many attempts as `number`. */
export interface RunningAttempt {
  readonly number: number
  readonly startedAt: Date
  readonly handler?: string
}
