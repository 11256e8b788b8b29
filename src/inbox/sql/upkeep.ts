import type { Logger } from '../../internal/logger.ts'
import type { StoredPauses } from '../operations/pauses.ts'
import type { SqlDeadLetters } from './dead-letters.ts'
import { FailureLog, PeriodicTask } from './periodic-task.ts'
import type { Signal } from './signal.ts'
import type { EventStore } from './store.ts'
import type { SqlWorker } from './worker.ts'

/** Longest delay between two reads of the pauses, and of the deadlines: while signals arrive, and without them (ms). */
const pausesMs = { notified: 60_000, polling: 1_500 }
const deadlinesMs = { notified: 60_000, polling: 1_000 }

/** Delay after a failure, and before acting on a signal (ms). */
const retryMs = 1_000

const firstExpiryMs = 500

export interface UpkeepOptions {
  readonly store: EventStore
  readonly worker: SqlWorker | undefined
  readonly deadLetters: SqlDeadLetters
  readonly pauses: StoredPauses
  readonly logger: Logger
}

/** Background work of an inbox: expires keys, replays marked deliveries, reads pauses, reports overdue expectations. */
export class Upkeep {
  readonly #expiry: PeriodicTask
  readonly #deadlines: PeriodicTask | undefined
  readonly #pauses: PeriodicTask | undefined
  #isEmpty = false

  constructor({ store, worker, deadLetters, pauses, logger }: UpkeepOptions) {
    const log = () => new FailureLog(logger, (error) => store.isTransient(error))
    const isQuiet = () => worker?.isQuiet === true && this.#isEmpty
    let isFirst = true
    const expire = async () => {
      await deadLetters.replayMarked()
      // Start-up goes first.
      const delayMs = isFirst ? firstExpiryMs : await store.expire()
      isFirst = false
      const hearsMarks = store.isNotified || worker === undefined
      return hearsMarks ? delayMs : Math.min(delayMs, retryMs)
    }
    this.#expiry = new PeriodicTask(expire, retryMs, log(), () => isQuiet() && store.hasExpired)
    if (worker === undefined) return
    const mode = () => (store.isNotified ? 'notified' : 'polling')
    const acceptDue = async () => {
      this.#isEmpty = false
      const nextMs = await store.acceptDue()
      this.#isEmpty = nextMs === Number.POSITIVE_INFINITY
      return Math.min(nextMs, deadlinesMs[mode()])
    }
    this.#deadlines = new PeriodicTask(acceptDue, retryMs, log(), isQuiet)
    const readPauses = () => pauses.read().then(() => pausesMs[mode()])
    this.#pauses = new PeriodicTask(readPauses, pausesMs.polling, log(), () => store.isNotified && !worker.hasPauses)
  }

  start(): void {
    this.#expiry.start(0)
    this.#deadlines?.start(0)
    this.#pauses?.start(pausesMs.polling)
  }

  expect(dueAt: Date): void {
    this.#deadlines?.soon(Math.min(Math.max(0, dueAt.getTime() - Date.now()), retryMs))
  }

  heard(signal: Signal): void {
    const isUnknown = signal === 'any'
    if (signal === 'pause' || isUnknown) this.#pauses?.soon(0)
    if (signal === 'pause') return
    this.#deadlines?.soon(retryMs)
    if (signal === 'replay') this.#expiry.now()
    else if (isUnknown) this.#expiry.soon(retryMs)
  }

  async stop(): Promise<void> {
    await Promise.all([this.#expiry.stop(), this.#deadlines?.stop(), this.#pauses?.stop()])
  }
}
