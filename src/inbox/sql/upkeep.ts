import { maxUnreadable } from '../engine/stored.ts'
import type { InboxHost } from '../inbox.ts'
import type { StoredPauses } from '../operations/pauses.ts'
import type { Database } from './database.ts'
import type { SqlDeadLetters } from './dead-letters.ts'
import { dropOldest } from './discards.ts'
import { fireOverdue } from './expectations.ts'
import { FailureLog, PeriodicTask } from './periodic-task.ts'
import type { Signal } from './signal.ts'
import type { SqlWorker } from './worker.ts'

/** Longest delay between two looks at each: while signals arrive, and without them (ms). */
const pausesMs = { notified: 60_000, polling: 1_500 }
const deadlinesMs = { notified: 60_000, polling: 1_000 }
const marksMs = { notified: 60_000, polling: 1_000 }

/** Delay after a failure, and before acting on a signal (ms). */
const retryMs = 1_000

const firstExpiryMs = 500

/** A delay as long as this (ms) means that a walk through all rows has ended, and how long its result holds (ms). */
const doneMs = 10_000
const recentMs = 3_600_000

export interface UpkeepOptions {
  readonly database: Database
  readonly host: Pick<InboxHost, 'logger' | 'expectations' | 'handlersOf'>
  readonly worker: SqlWorker | undefined
  readonly deadLetters: Pick<SqlDeadLetters, 'replayMarked'>
  readonly pauses: Pick<StoredPauses, 'read'>
  /** Dead letters kept. Absent: all. */
  readonly maxDeadLetters: number | undefined
  /** How long event keys are remembered (ms). */
  readonly ttlMs: number
  /** Called when there may be new events. */
  readonly stored: () => void
}

/** Background work of an inbox: expires keys, replays marked deliveries, reads pauses, fires overdue expectations. */
export class Upkeep {
  readonly #options: UpkeepOptions
  /** When an idle database is looked through again (`performance.now()`, ms). */
  #expiresAt = 0
  #expects = true
  readonly #tasks: Readonly<Record<'expiry' | 'marks' | 'deadlines' | 'pauses', PeriodicTask>>

  constructor(options: UpkeepOptions) {
    const { database, host, worker, deadLetters, pauses } = options
    this.#options = options
    const task = (run: () => Promise<number>, canSkip?: () => boolean) =>
      new PeriodicTask(run, retryMs, new FailureLog(host.logger, database), canSkip)
    const mode = () => (database.isListening ? 'notified' : 'polling')
    const readPauses = () => pauses.read().then(() => pausesMs[mode()])
    this.#tasks = {
      expiry: task(
        () => this.expire(),
        () => database.isListening && performance.now() < this.#expiresAt,
      ),
      marks: task(
        () => deadLetters.replayMarked().then(() => marksMs[mode()]),
        () => database.isListening,
      ),
      deadlines: task(
        async () => Math.min(await this.fireOverdue(), deadlinesMs[mode()]),
        () => database.isListening && !this.#expects,
      ),
      pauses: task(readPauses, () => database.isListening && worker?.hasPauses !== true),
    }
  }

  start(): void {
    this.#tasks.expiry.start(firstExpiryMs)
    this.#tasks.marks.start(0)
    if (this.#options.worker === undefined) return
    this.#tasks.deadlines.start(0)
    this.#tasks.pauses.start(pausesMs.polling)
  }

  /** Deletes a page of what has expired, and what there is too much of. Resolves with the delay before the next (ms). */
  async expire(): Promise<number> {
    const { database, host, worker, maxDeadLetters } = this.#options
    const { nextInMs, hasWoken } = await database.run(database.steps.expire())
    if (hasWoken) worker?.wake()
    const hasMore =
      (await dropOldest(database, 'unreadable', maxUnreadable, host.logger)) ||
      (maxDeadLetters !== undefined && (await dropOldest(database, 'events', maxDeadLetters, host.logger)))
    // Nothing is left: in an idle database the next look is not worth a statement.
    this.#expiresAt = hasMore || nextInMs < doneMs ? 0 : performance.now() + Math.min(recentMs, this.#options.ttlMs)
    return hasMore ? 0 : nextInMs
  }

  /** Turns overdue expectations into events. Resolves with the time until the next (ms), Infinity if none is open. */
  async fireOverdue(): Promise<number> {
    this.#expects = true
    const nextInMs = await fireOverdue(this.#options)
    this.#expects = nextInMs !== Number.POSITIVE_INFINITY
    return nextInMs
  }

  /** An expectation was stored. */
  lookForOverdue(dueAt: number): void {
    this.#tasks.deadlines.soon(Math.min(Math.max(0, dueAt - Date.now()), retryMs))
  }

  heard(signal: Signal): void {
    const isUnknown = signal === 'any'
    if (signal === 'pause' || isUnknown) this.#tasks.pauses.soon(0)
    if (signal === 'replay' || isUnknown) this.#tasks.marks.soon(0)
    if (signal === 'new' || isUnknown) this.#tasks.deadlines.soon(retryMs)
    if (signal === 'offered') this.#tasks.deadlines.soon(0)
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.#tasks).map((task) => task.stop()))
  }
}
