import { WebhookError } from '../../errors.ts'
import { countdown, forLastSteps } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { within } from '../../internal/timers.ts'
import { Closing } from '../closing.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxHost,
  UnfinishedEvent,
} from '../inbox.ts'
import type { StoredActivity } from '../operations/activity.ts'
import { readHistory } from '../operations/event-query.ts'
import { StoredOperations } from '../operations/operations.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import { recordActivity } from './activity.ts'
import type { Database, NewEvent } from './database.ts'
import { SqlDeadLetters } from './dead-letters.ts'
import { keepUnreadable } from './discards.ts'
import { SqlEvents } from './events.ts'
import { readExpected } from './expected.ts'
import { Intake, toNewEvent } from './intake.ts'
import { acceptingIn } from './offered.ts'
import { operationTable } from './operations.ts'
import { pauseTable } from './pauses.ts'
import type { Signal } from './signal.ts'
import { Upkeep } from './upkeep.ts'
import { SqlWorker } from './worker.ts'

export interface SqlInboxOptions {
  readonly handles: boolean
  readonly concurrency: number
  /** How long event keys are remembered (ms). */
  readonly ttlMs: number
  /**
   * How long lanes stay with a process that stopped responding (ms).
   * @defaultValue 30_000, unused in a database of one process
   */
  readonly leaseMs?: number
  /** How long an event may wait for an unreachable database (ms). Absent: as long as a step takes. */
  readonly timeoutMs?: number
  /** Dead letters kept. Absent: all. */
  readonly maxDeadLetters?: number
  /**
   * False where nothing runs between requests: the database then does the upkeep, and no activity is recorded.
   * @defaultValue true
   */
  readonly isAlwaysOn?: boolean
}

/** Longest wait on close for the last writes, and for the connections (ms). */
const disconnectMs = 1_000

/** The inbox over a database: accepts events into it, and handles them with a worker. */
export class SqlInbox implements Inbox {
  readonly deadLetters: SqlDeadLetters
  readonly events: SqlEvents
  readonly pauses: StoredPauses
  readonly operations: StoredOperations
  readonly acceptIn: Inbox['acceptIn']
  readonly activity?: (since: Date) => Promise<readonly ActivityMinute[]>
  readonly upkeep: Upkeep
  readonly #host: InboxHost
  readonly #database: Database
  readonly #isAlwaysOn: boolean
  readonly #worker: SqlWorker | undefined
  readonly #intake: Intake
  readonly #activity: StoredActivity | undefined
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, database: Database, options: SqlInboxOptions) {
    const { handles, timeoutMs, maxDeadLetters, isAlwaysOn = true, leaseMs = 30_000, ...limits } = options
    this.#host = host
    this.#database = database
    this.#isAlwaysOn = isAlwaysOn
    const worker = handles ? new SqlWorker({ database, host, leaseMs, ...limits }) : undefined
    this.#worker = worker
    const stored = () => this.#stored()
    this.#intake = new Intake({ database, host, timeoutMs, stored })
    this.deadLetters = new SqlDeadLetters(database, {
      host,
      check: () => this.#closing.checkOpen(),
      replayed: () => this.#replayed(),
    })
    this.events = new SqlEvents(database, worker)
    this.operations = new StoredOperations(operationTable(database))
    const applyPauses = worker && ((pauses: Parameters<SqlWorker['applyPauses']>[0]) => worker.applyPauses(pauses))
    this.pauses = new StoredPauses(pauseTable(database), { host, applyPauses })
    const { deadLetters, pauses } = this
    this.upkeep = new Upkeep({ ...limits, database, host, worker, deadLetters, pauses, maxDeadLetters, stored })
    this.acceptIn = acceptingIn({
      database,
      host,
      checkOpen: () => this.#closing.checkOpen(),
      publish: () => worker?.publish(),
      offered: () => this.upkeep.lookForOverdue(Date.now()),
    })
    if (isAlwaysOn) {
      const activity = recordActivity(host, database)
      this.#activity = activity
      this.activity = (since) => activity.since(since)
    }
    database.open(() => this.#opened())
  }

  protected get hasClosed(): boolean {
    return this.#closing.hasStarted
  }

  async #opened(): Promise<void> {
    if (this.hasClosed) return
    if (this.#worker !== undefined) {
      await this.pauses.read()
      await this.#worker.start()
    }
    if (this.hasClosed) return
    this.#database.listen?.({
      flush: () => this.#flush(),
      heard: (signal) => this.#heard(signal),
      lost: (error) => this.#lost(error),
    })
    if (!this.#isAlwaysOn) return
    this.upkeep.start()
    this.#activity?.start()
  }

  /** There may be new events. */
  #stored(): void {
    this.#database.notify?.('new')
    this.#worker?.wake()
  }

  /** Replayed events may wait, and begin expectations. */
  #replayed(): void {
    this.#worker?.wake()
    this.upkeep.lookForOverdue(Date.now())
  }

  #heard(signal: Signal): void {
    const [kind, id = ''] = signal.split(' ')
    if (kind === 'stop') return this.#worker?.stopId(id)
    this.upkeep.heard(signal)
    if (signal === 'awaited' || signal === 'any') this.#worker?.lease.claimAwaited()
    if (signal === 'new' || signal === 'due' || signal === 'any') this.#worker?.wake()
  }

  #flush(): void {
    this.#intake.flush()
    this.#worker?.flush()
  }

  /** Stops at once: another process has the storage. */
  #lost(error: Error): void {
    this.#worker?.storageLost(error.message)
    this.#activity?.stop()
    void this.upkeep.stop()
  }

  async ready(): Promise<void> {
    await this.#database.ready()
    this.#closing.checkOpen()
    if (this.#database.isOurs === false) throw new WebhookError('unavailable', 'another process has the storage')
    await this.#database.read('SELECT 1 AS one')
  }

  accept(accepted: AcceptedEvent, options: AcceptOptions = {}): MaybePromise<Acceptance> {
    this.#closing.checkOpen()
    const publishing = this.#worker?.publish()
    if (publishing !== undefined) return publishing.then(() => this.#accept(accepted, options))
    return this.#accept(accepted, options)
  }

  async acceptAll(accepted: readonly AcceptedEvent[], options: AcceptOptions = {}): Promise<readonly Acceptance[]> {
    this.#closing.checkOpen()
    await this.#worker?.publish()
    const events = accepted.map((each) => this.#newEvent(each))
    const stored = this.#intake.addAll(events)
    const store = ({ event }: AcceptedEvent, index: number) =>
      this.#store(event.key, events[index] as NewEvent, options, async () => (await stored)[index] as Acceptance)
    return Promise.all(accepted.map(store))
  }

  #accept(accepted: AcceptedEvent, options: AcceptOptions): Promise<Acceptance> {
    const event = this.#newEvent(accepted)
    return this.#store(accepted.event.key, event, options, () => this.#intake.add(event))
  }

  #newEvent(accepted: AcceptedEvent): NewEvent {
    return toNewEvent(this.#database, this.#host, accepted, this.#host.handlersOf(accepted.event))
  }

  /** With `waitUntil`, a server that waits, such as Next.js's, won't cut the handlers off. */
  async #store(key: string, event: NewEvent, { waitUntil }: AcceptOptions, store: () => Promise<Acceptance>) {
    // Other processes may handle it if they share the database.
    const isOurs = this.#database.steps.shared === undefined
    // Known before the event is: its handlers could end before the answer is here.
    const handled = waitUntil && isOurs ? this.#worker?.handled(key) : undefined
    let acceptance: Acceptance | undefined
    try {
      acceptance = await store()
      // Also if it is a duplicate: the answer to the first may have been lost.
      for (const { dueAt } of event.changes?.begins ?? []) this.upkeep.lookForOverdue(dueAt)
      return acceptance
    } finally {
      if (acceptance === 'accepted' && handled !== undefined) waitUntil?.(handled)
      else if (handled !== undefined) this.#worker?.endWait(key)
    }
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    await keepUnreadable(this.#database, unreadable, this.#host.logger)
  }

  stats(): MaybePromise<InboxStats> {
    return this.events.stats()
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return readHistory(this.events, mediaId)
  }

  expected(limit?: number): MaybePromise<readonly OpenExpectation[]> {
    return readExpected(this.#database, limit)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    const left = countdown(timeoutMs)
    this.#worker?.stopStarting()
    await within(left(), this.#intake.drained(), () => {})
    await this.#worker?.finish(left)
    const last = forLastSteps(left)
    const running = (await this.#worker?.release(last)) ?? []
    // An event stored after this would be missing from the report.
    await within(last(disconnectMs), this.#intake.drained(), () => {})
    const unfinished = await this.#unfinished(running)
    await within(last(disconnectMs), Promise.resolve(this.#activity?.finish()), () => {}).catch(() => {})
    const closed = Promise.all([this.upkeep.stop(), this.#database.close()])
    await within(last(disconnectMs), closed, () => {}).catch(() => {})
    return { unfinished }
  }

  async #unfinished(running: readonly UnfinishedEvent[]): Promise<readonly UnfinishedEvent[]> {
    const { isOurs, steps } = this.#database
    // If the storage is lost, whoever took it handles its events.
    if (isOurs === false) return []
    return steps.shared === undefined ? withStored(running, this.events, this.#host.logger) : running
  }
}

/** Adds the events that wait in the storage. */
async function withStored(
  running: readonly UnfinishedEvent[],
  events: SqlEvents,
  logger: Logger,
): Promise<readonly UnfinishedEvent[]> {
  const known = new Set(running.map(({ event }) => event.key))
  try {
    const left = await events.unfinished()
    return [...running, ...left.filter(({ event }) => !known.has(event.key))]
  } catch (error) {
    logger.warn({ err: error }, 'the inbox could not list the events left in its storage')
    return running
  }
}
