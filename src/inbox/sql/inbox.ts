import { countdown, forLastSteps } from '../../internal/countdown.ts'
import { type MaybePromise, whenever } from '../../internal/maybe-promise.ts'
import { within } from '../../internal/timers.ts'
import { Closing } from '../closing.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  ExpectationChanges,
  Inbox,
  InboxHost,
  UnfinishedEvent,
} from '../inbox.ts'
import { StoredActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredOperations } from '../operations/operations.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, Pause, UnreadableDelivery } from '../reading.ts'
import { activityTable } from './activity.ts'
import { keepUnreadable, SqlDeadLetters } from './dead-letters.ts'
import { SqlEvents } from './events.ts'
import { readExpected } from './expected.ts'
import { operationTable } from './operations.ts'
import { pauseTable } from './pauses.ts'
import { FailureLog } from './periodic-task.ts'
import type { Signal } from './signal.ts'
import type { EventStore, OwedExpectationChanges } from './store.ts'
import type { SqlTables } from './tables.ts'
import { Upkeep } from './upkeep.ts'
import { SqlWorker } from './worker.ts'

export interface SqlInboxOptions {
  readonly handles: boolean
  readonly concurrency: number
  /**
   * False where nothing runs between requests: the store then does the upkeep, and no activity is recorded.
   * @defaultValue true
   */
  readonly isAlwaysOn?: boolean
}

/** Longest wait on close for the last writes, and for the connections (ms). */
const disconnectMs = 1_000

/** The inbox over a database: accepts events into its store, and handles them with a worker. */
export class SqlInbox implements Inbox {
  readonly deadLetters: SqlDeadLetters
  readonly events: SqlEvents
  readonly pauses: StoredPauses
  readonly operations: StoredOperations
  readonly activity?: (since: Date) => Promise<readonly ActivityMinute[]>
  readonly #host: InboxHost
  readonly #store: EventStore
  readonly #worker: SqlWorker | undefined
  readonly #activity: StoredActivity | undefined
  readonly #upkeep: Upkeep | undefined
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, store: EventStore, { handles, concurrency, isAlwaysOn = true }: SqlInboxOptions) {
    this.#host = host
    this.#store = store
    const worker = handles ? new SqlWorker({ store, host, concurrency }) : undefined
    this.#worker = worker
    const check = () => {
      this.#closing.checkOpen()
      store.replays.check?.()
    }
    this.deadLetters = new SqlDeadLetters(store.tables, { ...store.replays, check }, { host, replace: store.replace })
    this.events = new SqlEvents(store.tables, store.reading, worker)
    const applyPauses = worker && ((pauses: readonly Pause[]) => worker.applyPauses(pauses))
    this.operations = new StoredOperations(operationTable(store.tables))
    this.pauses = new StoredPauses(pauseTable(store.tables), { host, applyPauses })
    if (isAlwaysOn) {
      const activity = this.#recordActivity()
      this.#activity = activity
      this.activity = (since) => activity.since(since)
      this.#upkeep = new Upkeep({
        store,
        worker,
        deadLetters: this.deadLetters,
        pauses: this.pauses,
        logger: host.logger,
      })
    }
    store.open((tables) => this.#opened(tables))
  }

  #recordActivity(): StoredActivity {
    const { tables, isTransient } = this.#store
    const log = new FailureLog(this.#host.logger, isTransient)
    const { write, read } = activityTable(tables, crypto.randomUUID())
    const activity = new StoredActivity({
      write: (minutes) => write(minutes).then(() => log.succeeded()),
      read,
      failed: (error) => log.failed(error),
    })
    this.#host.observe(activity.recorder)
    return activity
  }

  protected get hasClosed(): boolean {
    return this.#closing.hasStarted
  }

  async #opened(tables: SqlTables): Promise<void> {
    if (this.#closing.hasStarted) return
    if (this.#worker !== undefined) {
      this.pauses.take(await pauseTable(tables).list())
      await this.#worker.start({ heard: (signal) => this.#heard(signal), lost: (error) => this.#lost(error) }, tables)
    }
    if (this.#closing.hasStarted) return
    this.#upkeep?.start()
    this.#activity?.start()
  }

  ready(): Promise<void> {
    return this.#store.ready()
  }

  accept(accepted: AcceptedEvent, options: AcceptOptions = {}): MaybePromise<Acceptance> {
    this.#closing.checkOpen()
    if (this.#worker?.jobs.get(accepted.event.key) !== undefined) return 'duplicate'
    const publishing = this.#worker?.publish()
    if (publishing !== undefined) return publishing.then(() => this.#accept(accepted, options))
    return this.#accept(accepted, options)
  }

  #accept(accepted: AcceptedEvent, options: AcceptOptions): MaybePromise<Acceptance> {
    const { handlersOf, expectations } = this.#host
    const begun = expectations?.(accepted)
    const changes = begun && withOwed(begun, handlersOf)
    const stored = (isNew: boolean): Acceptance => {
      if (!isNew) return 'duplicate'
      for (const { dueAt } of changes?.begins ?? []) this.#upkeep?.expect(dueAt)
      // The event is stored. A server that waits, such as Next.js's, won't cut the handlers off.
      const { key } = accepted.event
      if (this.#worker?.jobs.get(key) !== undefined) options.waitUntil?.(this.#worker.handled(key))
      return 'accepted'
    }
    const isNew = this.#store.accept({ accepted, owed: handlersOf(accepted.event), changes })
    return whenever(isNew, stored)
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    const { accepting, tables } = this.#store
    await keepUnreadable(accepting ?? tables, unreadable, this.#host.logger)
  }

  stats(): MaybePromise<InboxStats> {
    return this.events.stats()
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return historyOf(this.events, mediaId)
  }

  expected(limit?: number): Promise<readonly OpenExpectation[]> {
    return readExpected(this.#store.tables, limit)
  }

  #heard(signal: Signal): void {
    const [what, id = ''] = signal.split(' ')
    if (what === 'stop') return this.#worker?.stopId(id)
    this.#upkeep?.heard(signal)
    if (what !== 'pause' && what !== 'replay')
      this.#worker?.wake(signal as Exclude<Signal, `stop ${string}` | 'pause' | 'replay'>)
  }

  /** Stops at once: another process has the storage. */
  #lost(error: Error): void {
    this.#worker?.abandon(error.message)
    this.#activity?.stop()
    void this.#upkeep?.stop()
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    const left = countdown(timeoutMs)
    this.#worker?.stopStarting()
    await within(left(), this.#store.accepted(), () => {})
    const waiting = (await this.#worker?.finish(left)) ?? []
    const last = forLastSteps(left)
    const running = (await this.#worker?.release(last)) ?? []
    const held = [...waiting, ...running]
    // An event stored after this would be missing from the report.
    await within(last(disconnectMs), this.#store.accepted(), () => {})
    const isShared = this.#store.shared !== undefined
    const unfinished = isShared ? running : [...held, ...(await this.#left(held))]
    await within(last(disconnectMs), Promise.resolve(this.#activity?.finish()), () => {}).catch(() => {})
    const closed = Promise.all([this.#upkeep?.stop(), this.#store.close()])
    await within(last(disconnectMs), closed, () => {}).catch(() => {})
    return { unfinished }
  }

  async #left(held: readonly UnfinishedEvent[]): Promise<readonly UnfinishedEvent[]> {
    // If the storage is lost, whoever took it handles its events.
    if (!this.#store.holds) return []
    const known = new Set(held.map(({ event }) => event.key))
    try {
      return (await this.events.unfinished()).filter(({ event }) => !known.has(event.key))
    } catch (error) {
      this.#host.logger.warn({ err: error }, 'the inbox could not list the events left in its storage')
      return []
    }
  }
}

/** Adds the handlers each overdue event would owe. */
export const withOwed = (changes: ExpectationChanges, handlersOf: InboxHost['handlersOf']): OwedExpectationChanges => ({
  ...changes,
  begins: changes.begins.map((begin) => ({ ...begin, owed: handlersOf(begin.overdue.event) })),
})
