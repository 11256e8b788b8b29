import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { within } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import type { ReplayParsing } from '../sql/dead-letters.ts'
import type { HeldEvent } from '../sql/event.ts'
import type { Reason, Signal } from '../sql/signal.ts'
import type {
  ClaimRequest,
  ClaimResult,
  EventStore,
  NewEvent,
  Settled,
  SharedLease,
  StoreListener,
} from '../sql/store.ts'
import { awaitedMark } from './claim/awaited.ts'
import { maxSize, PostgresClaims } from './claim/claims.ts'
import { CleanUp } from './clean-up.ts'
import type { Route } from './connection.ts'
import { Database, isUnreachable } from './database.ts'
import { postgresReading } from './event-reading.ts'
import { OverdueExpectations } from './expectations.ts'
import { Intake } from './intake.ts'
import { PostgresLease } from './lease.ts'
import { Announcements, Listener } from './notifications.ts'
import { NotifyThrottle } from './notify-throttle.ts'
import { makePool } from './pool.ts'
import { PostgresRecords } from './records.ts'
import { replaceIn, replays } from './replay.ts'
import { transactions } from './transactions.ts'

export interface PostgresStoreOptions extends Route {
  readonly schema: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
  readonly timeoutMs: number
  readonly listen: boolean
  readonly handles: boolean
}

/** Longest time between claims (ms), with and without notifications. */
const pollMs = { listening: 15_000, polling: 250 }

/** Maximum wait for the last notification on close (ms). */
const lastAnnounceMs = 1_000

/** A Postgres database shared by any number of processes. */
export class PostgresStore implements EventStore {
  readonly replays = replays
  readonly replace: ReplayParsing['replace']
  readonly readAhead = 500
  readonly maxParked: number
  readonly maxUnrecorded = maxSize
  readonly isTransient = isUnreachable
  readonly pollMs: number
  readonly tables: EventStore['tables']
  readonly reading: EventStore['reading']
  readonly accepting: EventStore['tables']
  readonly shared: SharedLease
  readonly #options: PostgresStoreOptions
  readonly #database: Database
  readonly #announcements: Announcements
  readonly #intake: Intake
  readonly #lease: PostgresLease
  readonly #claims: PostgresClaims
  readonly #records: PostgresRecords
  readonly #throttle: NotifyThrottle
  readonly #overdue: OverdueExpectations
  readonly #cleanUp: CleanUp
  readonly #ownPool: pg.Pool | undefined
  readonly #transact: ReturnType<typeof transactions>
  /** The payload of this process's own notifications. */
  readonly #sender = randomUUID()
  #listener: StoreListener | undefined
  #listening: Listener | undefined

  constructor(host: InboxHost, options: PostgresStoreOptions) {
    const { given, config, schema, concurrency, leaseMs, ttlMs, timeoutMs, listen, handles } = options
    const database = new Database({ config, schema, timeoutMs, listen, host })
    this.#options = options
    this.#database = database
    this.pollMs = listen ? pollMs.listening : pollMs.polling
    this.tables = database.tables
    this.accepting = database.tablesOn(database.accepting)
    this.replace = replaceIn(database.tables, host)
    this.#announcements = new Announcements(database, this.#sender)
    const stored = () => {
      this.#announcements.announce()
      this.#listener?.stored()
    }
    this.#intake = new Intake(database, timeoutMs, stored)
    this.maxParked = concurrency
    // What it may have been running (twice the concurrency), plus the parked events before those.
    this.#lease = new PostgresLease(database, leaseMs, 2 * concurrency + this.maxParked, host.handlers)
    this.reading = postgresReading(database.tables, { listen, owner: () => this.#lease.id })
    this.#claims = new PostgresClaims(database, this.#lease, concurrency, ttlMs, host.order)
    this.#records = new PostgresRecords(database, host.handlers, ttlMs)
    this.#throttle = new NotifyThrottle(
      () => this.#claims.processes,
      () => this.#listener?.heard('new'),
    )
    this.#overdue = new OverdueExpectations(database, stored)
    this.#cleanUp = new CleanUp(database, ttlMs)
    if (handles && given === undefined) this.#ownPool = makePool({ ...config, max: concurrency })
    const pool = given ?? (this.#ownPool as pg.Pool)
    const { prepares } = database
    this.#transact = transactions({ pool, schema: database.schema, leaseMs, prepares, measured: host.measured })
    this.shared = this.#sharedLease()
  }

  #sharedLease(): SharedLease {
    const { leaseMs, ttlMs } = this.#options
    const lease = this.#lease
    return {
      leaseMs,
      ttlMs,
      get hasNewHandlers() {
        return lease.hasNewHandlers
      },
      publish: () => this.#database.reach(() => lease.publish()),
      renew: () => lease.renew(),
      takeOver: () => lease.takeOver(),
      handlers: () => lease.readHandlers(),
    }
  }

  open(opened: Parameters<EventStore['open']>[0]): void {
    this.#database.start(() => opened(this.#database.unopened))
  }

  ready(): Promise<void> {
    return this.#database.ready()
  }

  get isNotified(): boolean {
    return this.#listening?.isListening === true
  }

  get isQuiet(): boolean {
    return this.#claims.isQuiet
  }

  accept(event: NewEvent): Promise<boolean> {
    return this.#intake.add(event)
  }

  accepted(): Promise<void> {
    return this.#intake.settle()
  }

  acceptDue(): Promise<number> {
    return this.#overdue.step()
  }

  get claimSize(): number {
    return this.#claims.size
  }

  async claim(ask: () => ClaimRequest): Promise<ClaimResult | undefined> {
    const {
      owner,
      events,
      hasMore,
      nextRetryInMs = Number.POSITIVE_INFINITY,
      nextStepInMs,
    } = await this.#claims.next(ask)
    if (owner !== this.#lease.self) return undefined
    return { events, hasMore, nextInMs: Math.min(nextRetryInMs, nextStepInMs) }
  }

  widenNextClaim(reason: Reason): void {
    if (reason === 'due' || reason === 'any') this.#claims.lookBack()
    else if (reason === 'awaited') this.#claims.lookForAwaited()
    else if (reason === 'timer') this.#claims.lookAround()
  }

  keepOnly(held: readonly HeldEvent[]): Promise<void> {
    return this.#lease.releaseOthers(held)
  }

  settle(end: Settled): Promise<boolean> {
    return this.#records.write(end)
  }

  transact: EventStore['transact'] = (attempt, scope, run) => this.#transact(attempt.job, this.#lease.id)(scope, run)

  async begin(listener: StoreListener): Promise<void> {
    this.#listener = listener
    await this.#lease.register(listener)
    if (!this.#options.listen || this.#listening !== undefined) return
    this.#listening = new Listener(this.#database, (payload) => this.#heard(payload))
    void this.#listening.start()
  }

  #heard(payload: string): void {
    if (payload === this.#sender) return
    if (payload === awaitedMark) this.widenNextClaim('awaited')
    if (isSignal(payload)) this.#listener?.heard(payload)
    // The id of the process that accepted events.
    else this.#throttle.notified()
  }

  get holds(): boolean {
    return !this.#lease.isOver
  }

  async end(): Promise<void> {
    this.#throttle.stop()
    await this.#lease.release()
  }

  expire(): Promise<number> {
    return this.#cleanUp.step()
  }

  get hasExpired(): boolean {
    return this.#cleanUp.isRecent
  }

  async close(): Promise<void> {
    await within(lastAnnounceMs, this.#announcements.stop(), () => {}).catch(() => {})
    await Promise.all([this.#listening?.stop(), this.#database.close(), this.#ownPool?.end()])
  }
}

const isSignal = (payload: string): payload is Exclude<Signal, 'new'> =>
  ['due', 'awaited', 'any', 'pause', 'replay'].includes(payload) || payload.startsWith('stop ')
