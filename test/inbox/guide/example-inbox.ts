// The inbox that docs/contributing.md explains. Its parts have the names and the order of the files of an inbox in src/inbox.

import type { PGlite, Transaction } from '@electric-sql/pglite'
import { sha256 } from '#crypto'
import { checkedApart, checkOptions, wholeNumber } from '../../../src/check-options.ts'
import { WebhookError } from '../../../src/errors.ts'
import type { MediaEvent } from '../../../src/events/catalogue.ts'
import { Closing } from '../../../src/inbox/closing.ts'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'

import { Engine } from '../../../src/inbox/engine/engine.ts'
import { Job, type JobAttempt } from '../../../src/inbox/engine/job.ts'
import { Jobs, releaseUnrecorded } from '../../../src/inbox/engine/jobs.ts'
import type { DeadResult, RetryResult, Settling } from '../../../src/inbox/engine/settling.ts'
import {
  maxUnreadable,
  reviveEvent,
  reviveFailedAttempts,
  unreadableDeadLetter,
} from '../../../src/inbox/engine/stored.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
  UnfinishedEvent,
} from '../../../src/inbox/inbox.ts'
import type {
  DeadLetter,
  DeadLetters,
  FailedAttempt,
  HandlerFailure,
  InboxStats,
  TraceCarrier,
  UnreadableDelivery,
} from '../../../src/inbox/reading.ts'
import { sleep, type Timer, unref } from '../../../src/internal/timers.ts'

// The factory and its options

/** The options of `exampleInbox`. */
export interface ExampleInboxOptions {
  /** The database. The inbox does not close it. */
  readonly database: PGlite
  /**
   * The schema of its table. One open inbox at a time can use it.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
  /**
   * The number of events that are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The number of events that may wait, those that wait for a retry included.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * The time for which event keys are remembered, in ms from the end of their events.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
}

/** An inbox in a PGlite database, a Postgres inside this process. */
export function exampleInbox(options: ExampleInboxOptions): InboxDefinition {
  const limit = wholeNumber()
  const limitRules = { concurrency: limit, maxWaiting: limit, ttlMs: limit }
  checkOptions('exampleInbox', options, { database: checkedApart, schema: checkedApart, ...limitRules })
  const { database, schema = 'media_webhooks', concurrency = 16 } = options
  const { maxWaiting = 10_000, ttlMs = 86_400_000 } = options
  const limits = { concurrency, maxWaiting, ttlMs }
  const open = (host: InboxHost) => new ExampleInbox(host, new EventTable(database, schema), limits)
  return defineInbox({ name: 'exampleInbox', storage: 'file', open })
}

type Limits = Required<Omit<ExampleInboxOptions, 'database' | 'schema'>>

/** Maximum pause before old keys are forgotten, in ms. */
const cleanUpMs = 60_000

class ExampleInbox implements Inbox {
  readonly deadLetters: DeadLetters
  readonly #logger: InboxHost['logger']
  readonly #table: EventTable
  readonly #jobs = new Jobs<StoredJob>()
  readonly #settling: ExampleSettling
  readonly #engine: Engine<StoredJob>
  readonly #intake: Intake
  readonly #loaded: Promise<void>
  readonly #cleaning: Timer
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, table: EventTable, { concurrency, maxWaiting, ttlMs }: Limits) {
    this.#logger = host.logger
    this.#table = table
    this.#settling = new ExampleSettling(table, host.logger)
    this.#engine = new Engine({ handle: host.handle, jobs: this.#jobs, settling: this.#settling, concurrency })
    this.#intake = new Intake(this.#jobs, this.#engine, maxWaiting)
    this.deadLetters = deadLettersOf(table, host, this.#intake, () => this.#checkRoom())
    this.#loaded = this.#load()
    // `ready` and `accept` report it.
    this.#loaded.catch(() => {})
    this.#cleaning = setInterval(() => this.#cleanUp(ttlMs), Math.min(ttlMs, cleanUpMs))
    unref(this.#cleaning)
  }

  /** Loads what the previous process left. */
  async #load(): Promise<void> {
    try {
      for (const row of await this.#table.open()) this.#intake.add(row)
    } catch (error) {
      throw new WebhookError('unavailable', 'exampleInbox: the database cannot be used', { cause: error })
    }
  }

  #cleanUp(ttlMs: number): void {
    this.#table
      .forget(new Date(Date.now() - ttlMs))
      .catch((error) => this.#logger.warn({ err: error }, 'the inbox could not forget old keys'))
  }

  ready(): Promise<void> {
    return this.#loaded
  }

  async accept(accepted: AcceptedEvent, { waitUntil }: AcceptOptions = {}): Promise<Acceptance> {
    // The events that the previous process left come first.
    await this.#loaded
    this.#closing.checkOpen()
    if (this.#jobs.get(accepted.event.key) !== undefined) return 'duplicate'
    if (this.#intake.isFull) return 'overloaded'
    const job = await this.#intake.addStored(this.#table.store(accepted))
    if (job === undefined) return 'duplicate'
    waitUntil?.(job.ended())
    return 'accepted'
  }

  #checkRoom(): void {
    this.#closing.checkOpen()
    if (this.#intake.isFull) throw new WebhookError('overloaded', 'too many events are waiting')
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    await this.#table.keepUnreadable(unreadable)
  }

  async stats(): Promise<InboxStats> {
    await this.#loaded
    const deadLetters = await this.#table.countDead()
    return { ...this.#jobs.counts(), deadLetters }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Finishes what runs. What waits is safe in the table. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    clearInterval(this.#cleaning)
    await this.#loaded.catch(() => {})
    await this.#intake.settle()
    const unfinished: UnfinishedEvent[] = []
    this.#engine.stop(() => unfinished.push(...this.#jobs.release(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.release(['running']), ...releaseUnrecorded(this.#jobs, this.#logger))
    await this.#settling.settle()
    return { unfinished }
  }
}

// Statements

/** The condition of a dead letter. */
const isDead = "state IN ('dead', 'unreadable')"

/** The table of events. Postgres stores no NUL in a text, so keys are stored as JSON, which escapes it. */
class EventTable {
  readonly #database: PGlite
  readonly #name: string
  readonly #made: Promise<unknown>

  constructor(database: PGlite, schema: string) {
    const quoted = `"${schema.replaceAll('"', '""')}"`
    this.#database = database
    this.#name = `${quoted}.event`
    this.#made = database.exec(makeTable(quoted))
    // Each statement reports it.
    this.#made.catch(() => {})
  }

  async #rows<Row = EventRow>(text: string, values: unknown[] = [], client?: Transaction): Promise<Row[]> {
    await this.#made
    return (await (client ?? this.#database).query<Row>(text, values)).rows
  }

  async #row(...statement: [text: string, values: unknown[], client?: Transaction]): Promise<EventRow | undefined> {
    const [row] = await this.#rows(...statement)
    return row
  }

  /** Stores an event with its key. `undefined`: the key is known. */
  store({ event, receivedAt, trace }: AcceptedEvent, dueAt?: Date, client?: Transaction) {
    return this.#row(
      `INSERT INTO ${this.#name} (key, event, received_at, trace, due_at)
       VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING RETURNING *`,
      [JSON.stringify(event.key), event, receivedAt, trace ?? null, dueAt ?? null],
      client,
    )
  }

  /** Lists the events that are neither handled nor dead, in order of acceptance. */
  open(): Promise<EventRow[]> {
    return this.#rows(`SELECT * FROM ${this.#name} WHERE state = 'open' ORDER BY id`)
  }

  /** Changes an event, unless it has ended. */
  async update(id: number, changes: Partial<EventRow>): Promise<void> {
    const columns = Object.keys(changes).map((column, index) => `${column} = $${index + 2}`)
    await this.#rows(`UPDATE ${this.#name} SET ${columns.join()} WHERE id = $1 AND state = 'open'`, [
      id,
      ...Object.values(changes),
    ])
  }

  findDead(key: string): Promise<EventRow | undefined> {
    return this.#row(`SELECT * FROM ${this.#name} WHERE key = $1 AND ${isDead}`, [JSON.stringify(key)])
  }

  listDead(limit: number, offset: number): Promise<EventRow[]> {
    return this.#rows(
      `SELECT * FROM ${this.#name} WHERE ${isDead} ORDER BY ended_at DESC, id DESC LIMIT $1 OFFSET $2`,
      [limit, offset],
    )
  }

  async countDead(): Promise<number> {
    const rows = await this.#rows<{ count: number }>(`SELECT count(*) FROM ${this.#name} WHERE ${isDead}`)
    return rows[0]?.count ?? 0
  }

  /** Makes an open event of a dead letter, with fresh attempts. */
  reopen(key: string): Promise<EventRow | undefined> {
    return this.#row(
      `UPDATE ${this.#name} SET state = 'open', attempts = 0, failures = '[]', due_at = $2, ended_at = NULL
       WHERE key = $1 AND state = 'dead' RETURNING *`,
      [JSON.stringify(key), new Date()],
    )
  }

  /** Deletes a dead letter. An event's key is remembered. */
  async discard(key: string): Promise<boolean> {
    if (await this.#deleteUnreadable(key)) return true
    const text = `UPDATE ${this.#name} SET state = 'ended', event = NULL WHERE key = $1 AND state = 'dead' RETURNING *`
    return (await this.#row(text, [JSON.stringify(key)])) !== undefined
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    const { reason, eventId, principal, body } = unreadable
    const { key, failures, diedAt } = unreadableDeadLetter(unreadable, sha256(body).slice(0, 32))
    await this.#rows(
      `INSERT INTO ${this.#name} (key, state, unreadable, body, failures, received_at, ended_at)
       VALUES ($1, 'unreadable', $2, $3, $4, $5, $5) ON CONFLICT (key) DO NOTHING`,
      [JSON.stringify(key), { reason, eventId, principal }, body, failures, diedAt],
    )
    await this.#rows(
      `DELETE FROM ${this.#name} WHERE id IN (
         SELECT id FROM ${this.#name} WHERE state = 'unreadable' ORDER BY id DESC OFFSET $1)`,
      [maxUnreadable],
    )
  }

  /** Replaces an unreadable delivery by the event that was parsed of it. `stored` is absent if that event is known. */
  replaceUnreadable(key: string, accepted: AcceptedEvent) {
    return this.#database.transaction(async (client) => {
      const isFound = await this.#deleteUnreadable(key, client)
      const stored = isFound ? await this.store(accepted, new Date(), client) : undefined
      return { isFound, stored }
    })
  }

  async #deleteUnreadable(key: string, client?: Transaction): Promise<boolean> {
    const text = `DELETE FROM ${this.#name} WHERE key = $1 AND state = 'unreadable' RETURNING *`
    return (await this.#row(text, [JSON.stringify(key)], client)) !== undefined
  }

  async forget(before: Date): Promise<void> {
    await this.#rows(`DELETE FROM ${this.#name} WHERE state = 'ended' AND ended_at < $1`, [before])
  }
}

// Rows

interface EventRow {
  /** The order of acceptance. */
  readonly id: number
  readonly key: string
  /** `ended`: it was handled or discarded, and only its key is remembered. */
  readonly state: 'open' | 'dead' | 'unreadable' | 'ended'
  /** `null` for an unreadable delivery, and once the event has ended. */
  readonly event: MediaEvent | null
  readonly received_at: Date
  readonly trace: TraceCarrier | null
  readonly attempts: number
  readonly completed: readonly string[]
  readonly failed: readonly FailedAttempt[]
  /** The time of the next attempt, or of the replay. */
  readonly due_at: Date | null
  readonly failures: readonly HandlerFailure[]
  readonly ended_at: Date | null
  readonly unreadable: Pick<UnreadableDelivery, 'reason' | 'eventId' | 'principal'> | null
  readonly body: Uint8Array | null
}

/** An event of the table, in this process. */
class StoredJob extends Job {
  readonly id: number
  /** Its newest record, which each further one waits for. */
  recorded: Promise<void> = Promise.resolve()

  constructor({ id, event, received_at, trace, attempts, completed, failed, due_at }: EventRow) {
    const accepted = {
      event: reviveEvent(event as MediaEvent),
      receivedAt: received_at,
      ...(trace !== null && { trace }),
    }
    const failedAttempts = reviveFailedAttempts(failed)
    super(accepted, { attempts, completed, failedAttempts, ...(due_at !== null && { since: due_at.getTime() }) })
    this.id = id
  }
}

const keyOf = (row: EventRow): string => JSON.parse(row.key)

function toDeadLetter(row: EventRow): DeadLetter {
  const { event, received_at: receivedAt, attempts, completed, failed, failures, unreadable, body, trace } = row
  return {
    key: keyOf(row),
    event: event === null ? undefined : reviveEvent(event),
    ...(unreadable !== null && body !== null && { unreadable: { ...unreadable, receivedAt, body } }),
    receivedAt,
    attempts,
    completed,
    failures,
    failedAttempts: reviveFailedAttempts(failed),
    diedAt: row.ended_at as Date,
    ...(trace !== null && { trace }),
  }
}

// Intake

/** Adds the events of the table to the lanes. */
class Intake {
  readonly #jobs: Jobs<StoredJob>
  readonly #engine: Engine<StoredJob>
  readonly #maxWaiting: number
  readonly #storing = new Set<Promise<unknown>>()

  constructor(jobs: Jobs<StoredJob>, engine: Engine<StoredJob>, maxWaiting: number) {
    this.#jobs = jobs
    this.#engine = engine
    this.#maxWaiting = maxWaiting
  }

  get isFull(): boolean {
    return this.#jobs.size + this.#storing.size - this.#engine.running >= this.#maxWaiting
  }

  add(row: EventRow): StoredJob {
    const job = new StoredJob(row)
    this.#jobs.add(job)
    const delayMs = (row.due_at?.getTime() ?? 0) - Date.now()
    if (delayMs > 0) this.#engine.addLater(job, delayMs)
    else this.#engine.add(job)
    return job
  }

  /** Adds an event as soon as it is stored. PGlite answers in the order of the statements, so that lanes have it too. */
  async addStored(storing: Promise<EventRow | undefined>): Promise<StoredJob | undefined> {
    const adding = storing.then((row) => row && this.add(row))
    this.#storing.add(adding)
    try {
      return await adding
    } finally {
      this.#storing.delete(adding)
    }
  }

  /** Resolves once the events that are being stored have been added, or could not be stored. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#storing)
  }
}

// Settle

/** The pause before a failed record is written again, in ms. */
const pauseMs = 500

/** Records the ends of attempts in the table. */
class ExampleSettling implements Settling<StoredJob> {
  readonly retries = 'here'
  readonly #table: EventTable
  readonly #logger: InboxHost['logger']
  readonly #records = new Set<Promise<void>>()

  constructor(table: EventTable, logger: InboxHost['logger']) {
    this.#table = table
    this.#logger = logger
  }

  progress(job: StoredJob, completed: readonly string[]): Promise<void> {
    return this.#record(job, { completed })
  }

  complete({ job }: JobAttempt<StoredJob>, recorded: () => void): void {
    void this.#record(job, { state: 'ended', event: null, ended_at: new Date() }).then(recorded)
  }

  deadLetter(job: StoredJob, { completed, failures }: DeadResult, recorded: () => void): void {
    const failed = job.failedWith(failures)
    const end = { state: 'dead', attempts: job.number, completed, failed, failures, ended_at: new Date() } as const
    void this.#record(job, end).then(recorded)
  }

  retry({ job }: JobAttempt<StoredJob>, { delayMs }: RetryResult): void {
    const { number, completed, failedAttempts: failed } = job
    void this.#record(job, { attempts: number - 1, completed, failed, due_at: new Date(Date.now() + delayMs) })
  }

  #record(job: StoredJob, changes: Partial<EventRow>): Promise<void> {
    const record = job.recorded.then(() => this.#write(job, changes))
    job.recorded = record
    this.#records.add(record)
    void record.then(() => this.#records.delete(record))
    return record
  }

  /**
   * Tries until it is written or the job has ended. The first try is always made: an attempt that fails while the inbox closes
   * has its retry recorded after its job has ended.
   */
  async #write(job: StoredJob, changes: Partial<EventRow>): Promise<void> {
    try {
      await this.#table.update(job.id, changes)
    } catch (error) {
      this.#logger.error({ key: job.key, err: error }, 'the inbox could not record the outcome of an event')
      if (!job.hasEnded) await sleep(pauseMs)
      if (!job.hasEnded) await this.#write(job, changes)
    }
  }

  /** Resolves once no record is being written. */
  async settle(): Promise<void> {
    await Promise.all(this.#records)
  }
}

// Operations

/** @param checkRoom throws when the inbox can take no event */
function deadLettersOf(table: EventTable, host: InboxHost, intake: Intake, checkRoom: () => void): DeadLetters {
  async function replayUnreadable(key: string, unreadable: UnreadableDelivery): Promise<boolean> {
    const event = await host.parse(unreadable)
    checkRoom()
    const replacing = table.replaceUnreadable(key, { event, receivedAt: unreadable.receivedAt })
    await intake.addStored(replacing.then(({ stored }) => stored))
    return (await replacing).isFound
  }

  return {
    list: async ({ limit = 100, offset = 0 } = {}) => (await table.listDead(limit, offset)).map(toDeadLetter),
    async get(key) {
      const row = await table.findDead(key)
      return row && toDeadLetter(row)
    },
    async replay(key) {
      const unreadable = (await this.get(key))?.unreadable
      if (unreadable !== undefined) return replayUnreadable(key, unreadable)
      checkRoom()
      return (await intake.addStored(table.reopen(key))) !== undefined
    },
    discard: (key) => table.discard(key),
  }
}

// Schema

const makeTable = (schema: string): string => `
CREATE SCHEMA IF NOT EXISTS ${schema};
CREATE TABLE IF NOT EXISTS ${schema}.event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text NOT NULL UNIQUE,
  state text NOT NULL DEFAULT 'open',
  event json,
  received_at timestamptz NOT NULL,
  trace json,
  attempts integer NOT NULL DEFAULT 0,
  completed json NOT NULL DEFAULT '[]',
  failed json NOT NULL DEFAULT '[]',
  due_at timestamptz,
  failures json NOT NULL DEFAULT '[]',
  ended_at timestamptz,
  unreadable json,
  body bytea
);
CREATE INDEX IF NOT EXISTS event_open ON ${schema}.event (id) WHERE state = 'open';
CREATE INDEX IF NOT EXISTS event_ended ON ${schema}.event (state, ended_at);
`
