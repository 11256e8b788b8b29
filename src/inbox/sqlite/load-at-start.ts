import { nextTurn, sleep } from '../../internal/timers.ts'
import type { InboxStats } from '../reading.ts'
import type { SqliteJob } from '../sqlite-tables/job.ts'
import { eventsPerTurn, Loader, type LoaderOptions } from '../sqlite-tables/load.ts'
import { waitOf } from '../sqlite-tables/rows.ts'

/** The pause after the file could not be read, in ms. */
const pauseMs = 1_000

/** The number of rows that are listed in one turn: one or two milliseconds. */
const rowsPerTurn = 2_000

/** The number of jobs that are examined in one turn. */
const jobsPerTurn = 5_000

export interface StartLoaderOptions extends LoaderOptions {
  /** Makes the inbox read the file again soon. */
  readonly checkAgain: () => void
}

/**
 * Loads what an earlier process left, in order of acceptance: the first events when the file is opened, and then some in
 * each turn of the event loop. What is accepted or replayed meanwhile is in memory, and is handled behind all of that: so
 * the events of a media item keep their order.
 */
export class StartLoader extends Loader<StartLoaderOptions> {
  /** The rows of events that are in the file only, as far as they are listed. */
  readonly #left = new Set<number>()
  #lastListed = 0
  #isListed = false
  #listing: Promise<void> | undefined
  /** The jobs that are handled once no event is left. */
  readonly #behind: SqliteJob[] = []
  #isOver = false
  #isReading = false

  /** `true` once every event is in memory, and has its place in the order. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Present while the number of events in the file is not known. Resolves when it is, or when the file cannot be read. */
  get listing(): Promise<void> | undefined {
    return this.#listing
  }

  /** The number of events that are in the file only. */
  get left(): number {
    return this.#left.size
  }

  /** Loads the first events. Throws when one of them cannot be read. */
  begin(): void {
    const { events } = this.options.file
    // They are due, and are loaded in their turn.
    events.forgetRetries(events.askedRetries())
    this.#listPage()
    const first = [...this.#left].slice(0, eventsPerTurn)
    for (const row of first) this.#inherit(this.load(row))
    if (this.#isListed && this.#left.size === 0) return this.#end()
    const listed = this.#listRest()
    if (!this.#isListed) this.#listing = listed.catch(() => {})
    void this.#goOn(listed)
  }

  #listPage(): void {
    const { file, jobs } = this.options
    const rows = file.events.rows(this.#lastListed, rowsPerTurn)
    for (const row of rows) this.#left.add(row)
    this.#lastListed = rows.at(-1) ?? this.#lastListed
    if (rows.length === rowsPerTurn) return
    this.#isListed = true
    // Some were replayed before they were listed.
    for (const { row } of jobs) this.#left.delete(row)
  }

  async #listRest(): Promise<void> {
    try {
      while (!this.#isListed) {
        await nextTurn()
        if (this.options.hasStopped()) return
        this.#listPage()
      }
    } finally {
      this.#listing = undefined
    }
  }

  /** Loads the others. While the file cannot be read, it tries again: later events must not overtake them. */
  async #goOn(listed: Promise<void>): Promise<void> {
    const { logger, hasStopped } = this.options
    let listing = listed
    while (!this.#isOver && !hasStopped()) {
      try {
        await listing
        await this.#loadLeft()
      } catch (error) {
        if (hasStopped()) return
        logger.error({ err: error, events: this.left }, 'the inbox could not read events that wait in its file yet')
        await sleep(pauseMs)
        listing = this.#listRest()
      }
    }
  }

  async #loadLeft(): Promise<void> {
    const { recovery, hasStopped } = this.options
    let taken = 0
    for (const row of this.#left) {
      if (taken++ % eventsPerTurn === 0) await nextTurn()
      if (hasStopped()) return
      this.#inherit(this.loadReadable(row))
      this.#left.delete(row)
    }
    for (const [index, job] of this.#behind.entries()) {
      if (index % jobsPerTurn === 0) await nextTurn()
      if (hasStopped()) return
      recovery.add(job)
    }
    if (!hasStopped()) this.#end()
  }

  #inherit(job: SqliteJob | undefined): void {
    if (job !== undefined) this.options.recovery.inherit(job)
  }

  #end(): void {
    this.#isOver = true
    this.#behind.length = 0
    this.options.recovery.hasAll()
  }

  protected override load(row: number, add?: (job: SqliteJob) => void): SqliteJob | undefined {
    const job = super.load(row, add)
    this.#left.delete(row)
    return job
  }

  /** Handles a job whose event has just been accepted or replayed. */
  add(job: SqliteJob): void {
    if (this.#isOver) return this.options.recovery.add(job)
    job.state = 'waiting'
    this.#behind.push(job)
  }

  /** Loads a replayed event. If the file cannot be read now, it is read again soon. */
  replayed(row: number): void {
    try {
      this.load(row, (job) => this.add(job))
    } catch {
      this.options.checkAgain()
    }
  }

  /** Loads the events that another process has put back, a few in each turn of the event loop. */
  async missing(): Promise<void> {
    const { logger, checkAgain } = this.options
    if (!this.#isOver || this.#isReading) return checkAgain()
    this.#isReading = true
    try {
      await this.#loadMissing()
    } catch (error) {
      logger.warn({ err: error }, 'the inbox could not read its file')
      checkAgain()
    } finally {
      this.#isReading = false
    }
  }

  async #loadMissing(): Promise<void> {
    const { file, jobs, hasStopped } = this.options
    const held = new Set<number>()
    for (const { row } of jobs) if (held.add(row).size % jobsPerTurn === 0) await nextTurn()
    let taken = 0
    let rows: readonly number[] = []
    do {
      if (hasStopped()) return
      rows = file.events.rows(rows.at(-1), rowsPerTurn)
      for (const row of rows) {
        if (held.has(row)) continue
        if (++taken % eventsPerTurn === 0) await nextTurn()
        if (hasStopped()) return
        this.loadReadable(row)
      }
      await nextTurn()
    } while (rows.length === rowsPerTurn)
  }

  /** Loads an event before its turn if it waits for a retry: it has lost its place in the order already. */
  loadRetry(key: string): SqliteJob | undefined {
    const { file, hasStopped } = this.options
    const row = this.#isOver || hasStopped() ? undefined : file.events.rowOf(key)
    if (row === undefined) return undefined
    const stored = file.events.get(row)
    return stored !== undefined && waitOf(stored).dueInMs > 0 ? this.load(row, (job) => this.add(job)) : undefined
  }

  /** Starts the attempts that another process has asked for. */
  async startAsked(): Promise<void> {
    const { file, commits, jobs, engine, logger, hasStopped, checkAgain } = this.options
    try {
      const rows = file.events.askedRetries()
      if (rows.size === 0) return
      // First, so that one request never starts two attempts.
      await commits.add(() => file.events.forgetRetries(rows))
      for (const job of [...jobs]) if (rows.has(job.row)) engine.retryNow(job)
    } catch (error) {
      if (hasStopped()) return
      logger.warn({ err: error }, 'the inbox could not start a retry that another process asked for yet')
      checkAgain()
    }
  }

  /** Loads every event that is not in memory, at once, except those that cannot be read. */
  rest(): void {
    const { file, jobs } = this.options
    const held = new Set(Array.from(jobs, ({ row }) => row))
    for (const row of file.events.rows()) if (!held.has(row)) this.loadReadable(row)
  }

  counts(): Omit<InboxStats, 'deadLetters'> {
    return this.countsWith(this.#left)
  }
}
