import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { checkedApart, checkOptions, flag, type Rules, wholeNumber } from '../check-options.ts'
import { countdown, forLastSteps } from '../internal/countdown.ts'
import { within } from '../internal/timers.ts'
import { Closing } from './closing.ts'
import { defineInbox } from './define-inbox.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
  Transactional,
} from './inbox.ts'
import { type ActivityStorage, StoredActivity } from './operations/activity.ts'
import { historyOf } from './operations/event-query.ts'
import { StoredPauses } from './operations/pauses.ts'
import { awaitedMark } from './postgres/awaited.ts'
import { CleanUp } from './postgres/clean-up.ts'
import { type PostgresConnection, type Route, routeOf } from './postgres/connection.ts'
import { Database } from './postgres/database.ts'
import { withOwed } from './postgres/effects.ts'
import { PostgresEvents, stoppedRow } from './postgres/events.ts'
import { Overdue, readExpected } from './postgres/expectations.ts'
import { Intake } from './postgres/intake.ts'
import { hashBody } from './postgres/keys.ts'
import { Announcements, Listener } from './postgres/notifications.ts'
import { readStats, shared } from './postgres/numbers.ts'
import { makePool } from './postgres/pool.ts'
import { FailureLog, Regularly } from './postgres/regularly.ts'
import { parsingIn, replays } from './postgres/replay.ts'
import { checkSchemaName, standardSchema } from './postgres/schema.ts'
import type { Tables } from './postgres/tables.ts'
import { PostgresWorker } from './postgres/worker.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, Pause, UnreadableDelivery } from './reading.ts'
import { activityTable } from './sql/activity.ts'
import { keepUnreadable, replayMark, SqlDeadLetters } from './sql/dead-letters.ts'
import { pauseMark, pauseTable } from './sql/pauses.ts'

export { type InboxDatabaseOptions, migrate, openInboxDatabase } from './postgres/inspection.ts'
export { migrationSql } from './postgres/schema.ts'

/** The options of `postgresInbox`: either `pool` or `connection`, and limits. */
export interface PostgresInboxOptions {
  /**
   * The application's own pool of the `pg` package. The transactions of handlers take their clients from it. The inbox
   * makes up to eleven more connections with its options, so that deliveries never wait for handlers. It listens for the
   * pool's errors, and does not close the pool.
   */
  readonly pool?: pg.Pool
  /**
   * The URL of a database, or the options of a pool to make, which has room for a transaction of each running handler. They
   * must name the server: nothing means localhost. A pool is taken as {@link PostgresInboxOptions.pool | pool}.
   */
  readonly connection?: PostgresConnection
  /**
   * The schema of the inbox's tables. Receivers that name the same one share their events.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
  /**
   * `false` for a process that only accepts events, which others handle. Register the same handlers in both, with the same
   * names: a receiver ignores events of a type that it has no handler for.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * The number of events that this process handles at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The time for which events stay with a process that has stopped answering, in ms. It must be longer than handlers keep
   * the event loop busy: the lease is renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * The time for which event keys and the outcome of their events are remembered, in ms from its end.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The time for which a step may wait for an unreachable Postgres, in ms. Keep it below the time that
   * the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
  /**
   * `false` behind a transaction pooler (PgBouncer, Supabase, Neon), which passes no notifications on: the inbox looks for
   * events every 250 ms then, and prepares no statement by name. With `true`, `ready()` rejects behind such a pooler.
   * @defaultValue true
   */
  readonly listen?: boolean
}

type Settings = Route & Required<Omit<PostgresInboxOptions, 'pool' | 'connection'>>

/** Maximum time between two checks for events, in ms: with notifications, and without. */
const pollMs = { listening: 15_000, polling: 250 }

/** The pause between two looks for marked deliveries, in ms, without notifications. */
const marksMs = 1_000

/**
 * Maximum time between two reads of the pauses, and between two searches for what is overdue (ms): with notifications, and
 * without.
 */
const pausesMs = { listening: 60_000, polling: 1_500 }
const watchMs = { listening: 60_000, polling: 1_000 }

/** The delay before deadlines are searched again, in ms, after a failure, and once there may be nearer ones. */
const watchAgainMs = 1_000

/** Maximum time that closing waits for the connections, in ms. */
const disconnectMs = 1_000

/**
 * An inbox in a Postgres database (13 or later), which any number of processes fill and empty. It survives the loss of
 * any of them, and keeps the order of the events of each media item across all of them. Handlers have
 * `context.transaction`: what they write with it is written exactly once. While Postgres is unreachable, deliveries
 * wait up to `timeoutMs` for it, and are answered 503 then; the inbox recovers by itself. It makes its tables in a
 * schema of its own. It keeps the newest 1,000 unreadable deliveries.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: postgresInbox({ pool }) })
 * receiver.on('encoding.finished', (event, { transaction }) =>
 *   transaction((client) => client.query('UPDATE video SET ready = true WHERE id = $1', [event.mediaId])),
 * )
 * await receiver.ready()
 * ```
 * @throws WebhookError `invalid_option`; `receiver.ready()` rejects with `unavailable` when the database cannot be used
 */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition<Transactional<pg.PoolClient>> {
  checkOptions('postgresInbox', options, rules)
  const { schema = standardSchema, handles = true, concurrency = 16 } = options ?? {}
  const { leaseMs = 30_000, ttlMs = 86_400_000, timeoutMs = 2_000, listen = true } = options ?? {}
  checkSchemaName('postgresInbox', schema)
  const settings = {
    ...routeOf('postgresInbox', options ?? {}),
    schema,
    handles,
    concurrency,
    leaseMs,
    ttlMs,
    timeoutMs,
    listen,
  }
  const open = (host: InboxHost) => new PostgresInbox(host, settings)
  return defineInbox({ name: 'postgresInbox', storage: 'database', expects: true, open })
}

const rules: Rules<PostgresInboxOptions> = {
  pool: checkedApart,
  connection: checkedApart,
  schema: checkedApart,
  handles: flag,
  concurrency: wholeNumber(),
  leaseMs: wholeNumber(),
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
  listen: flag,
}

class PostgresInbox implements Inbox {
  readonly deadLetters: SqlDeadLetters
  readonly events: PostgresEvents
  readonly pauses: StoredPauses
  readonly #host: InboxHost
  readonly #database: Database
  readonly #announcements: Announcements
  readonly #intake: Intake
  readonly #worker: PostgresWorker | undefined
  readonly #listener: Listener | undefined
  readonly #cleanUp: CleanUp
  readonly #cleaning: Regularly
  readonly #overdue: Overdue | undefined
  /** Hands over what is overdue. */
  readonly #watching: Regularly | undefined
  /** Reads the pauses. */
  readonly #pausing: Regularly | undefined
  readonly #activity: StoredActivity
  readonly #ownPool: pg.Pool | undefined
  /** The payload of this process's notifications, which it need not hear. Its activity has it as its process. */
  readonly #sender = randomUUID()
  readonly #claims = () => this.#worker?.claims() ?? {}
  readonly #stats = shared(() => readStats(this.#database.tables, this.#claims()))
  readonly #stored = () => {
    this.#worker?.wake()
    this.#announcements.announce()
  }
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, settings: Settings) {
    const { given, config, schema, handles, concurrency, leaseMs, ttlMs, timeoutMs, listen } = settings
    const database = new Database({ config, schema, timeoutMs, listen, host })
    const longestPauseMs = listen ? pollMs.listening : pollMs.polling
    this.#host = host
    this.#database = database
    this.#announcements = new Announcements(database, this.#sender)
    this.#intake = new Intake(database, timeoutMs, this.#stored)
    this.deadLetters = this.#openDeadLetters(database.tables)
    const own = (key: string) => this.#worker?.stop(key) ?? false
    this.events = new PostgresEvents(database.tables, this.#claims, { own, reachesOthers: listen })
    this.#cleanUp = new CleanUp(database, ttlMs)
    // There are no events and no open expectations, and this process will hear of the next ones.
    const isQuiet = () => this.#worker?.isQuiet === true && this.#overdue?.isEmpty === true
    const isClean = () => isQuiet() && this.#cleanUp.isRecent
    this.#cleaning = new Regularly(() => this.#upkeep(), longestPauseMs, host.logger, isClean)
    this.#activity = new StoredActivity(this.#activityTable())
    host.observe(this.#activity.recorder)
    if (handles) {
      if (given === undefined) this.#ownPool = makePool({ ...config, max: concurrency })
      const pool = given ?? (this.#ownPool as pg.Pool)
      const isNotified = () => this.#listener?.isListening === true
      const limits = { concurrency, leaseMs, ttlMs, pollMs: longestPauseMs }
      const worker = new PostgresWorker({ database, host, pool, ...limits, isNotified })
      this.#worker = worker
      const mode = listen ? 'listening' : 'polling'
      const overdue = new Overdue(database, watchMs[mode], this.#stored)
      this.#overdue = overdue
      this.#watching = new Regularly(() => overdue.step(), watchAgainMs, host.logger, isQuiet)
      const readPauses = () => this.pauses.read().then(() => pausesMs[mode])
      const hasNoPauses = () => isNotified() && !worker.hasPauses
      this.#pausing = new Regularly(readPauses, pausesMs.polling, host.logger, hasNoPauses)
      if (listen) this.#listener = new Listener(database, (payload) => this.#heard(payload))
    }
    const worker = this.#worker
    const obey = worker && ((pauses: readonly Pause[]) => worker.obey(pauses))
    this.pauses = new StoredPauses(pauseTable(database.tables), { host, obey })
    database.start(() => this.#opened())
  }

  #openDeadLetters(tables: Tables): SqlDeadLetters {
    const check = () => this.#closing.checkOpen()
    return new SqlDeadLetters(tables, { ...replays, check }, parsingIn(tables, this.#host))
  }

  #activityTable(): ActivityStorage {
    const log = new FailureLog(this.#host.logger)
    const { write, read } = activityTable(this.#database.tables, this.#sender)
    return {
      write: (minutes) => write(minutes).then(() => log.succeeded()),
      read,
      failed: (error) => log.failed(error),
    }
  }

  async #opened(): Promise<void> {
    if (this.#closing.hasStarted) return
    if (this.#worker !== undefined) this.pauses.take(await pauseTable(this.#database.unopened).list())
    await this.#worker?.start()
    void this.#listener?.start()
    this.#cleaning.start(0)
    this.#watching?.start(0)
    this.#pausing?.start(pausesMs.polling)
    // The inbox may have closed meanwhile.
    if (!this.#closing.hasStarted) this.#activity.start()
  }

  ready(): Promise<void> {
    return this.#database.ready()
  }

  async accept(accepted: AcceptedEvent): Promise<Acceptance> {
    this.#closing.checkOpen()
    if (this.#worker?.has(accepted.event.key)) return 'duplicate'
    const publishing = this.#worker?.publish()
    if (publishing !== undefined) await publishing
    const { handlersOf, expectations } = this.#host
    const effects = expectations?.(accepted)
    const owing = effects && withOwed(effects, handlersOf)
    const isNew = await this.#intake.add(accepted, handlersOf(accepted.event), owing)
    if (isNew && owing !== undefined && owing.begins.length > 0) this.#watching?.soon(watchAgainMs)
    return isNew ? 'accepted' : 'duplicate'
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    const tables = this.#database.tablesOn(this.#database.accepting)
    await keepUnreadable(tables, unreadable, hashBody(unreadable.body), this.#host.logger)
  }

  stats(): Promise<InboxStats> {
    return this.#stats()
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return historyOf(this.events, mediaId)
  }

  expected(limit?: number): Promise<readonly OpenExpectation[]> {
    return readExpected(this.#database.tables, limit)
  }

  activity(since: Date): Promise<readonly ActivityMinute[]> {
    return this.#database.reach(() => this.#activity.since(since))
  }

  #heard(payload: string): void {
    if (payload === this.#sender) return
    const stopped = stoppedRow(payload)
    if (stopped !== undefined) return this.#worker?.stopRow(stopped)
    if (payload === pauseMark || payload === '') this.#pausing?.soon(0)
    if (payload === pauseMark) return
    this.#watching?.soon(watchAgainMs)
    if (payload === awaitedMark) return this.#worker?.hearAwaited()
    // Replays, processes that close, and a new connection of the listener have no payload.
    if (payload === '') this.#worker?.wake(true)
    else this.#worker?.hear()
    if (payload === replayMark) this.#cleaning.now()
    if (payload === '') this.#cleaning.soon(watchAgainMs)
  }

  /** Returns the pause until the next time, in ms. */
  async #upkeep(): Promise<number> {
    await this.deadLetters.replayMarked()
    const pauseMs = await this.#cleanUp.step()
    const hearsMarks = this.#listener !== undefined || this.#worker === undefined
    return hearsMarks ? pauseMs : Math.min(pauseMs, marksMs)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    const left = countdown(timeoutMs)
    await within(left(), this.#intake.settle(), () => {})
    await this.#worker?.finish(left)
    const last = forLastSteps(left)
    const unfinished = (await this.#worker?.release(last)) ?? []
    const finished = [this.#activity.finish(), this.#announcements.stop()]
    await within(last(disconnectMs), Promise.all(finished), () => {}).catch(() => {})
    const regular = [this.#cleaning.stop(), this.#watching?.stop(), this.#pausing?.stop()]
    const disconnected = [...regular, this.#listener?.stop(), this.#database.close(), this.#ownPool?.end()]
    await within(last(disconnectMs), Promise.all(disconnected), () => {}).catch(() => {})
    return { unfinished }
  }
}
