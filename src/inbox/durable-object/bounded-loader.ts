import type { AcceptedEvent } from '../inbox.ts'
import type { InboxStats } from '../reading.ts'
import { SqliteJob } from '../sqlite-tables/job.ts'
import { Loader, type LoaderOptions } from '../sqlite-tables/load.ts'
import { waitOf } from '../sqlite-tables/rows.ts'

/** Due events in memory beyond which no more are loaded. */
const maxDue = 1_000

/** JSON of the events in memory beyond which no more are loaded, in characters. An object has 128 MB. */
const maxText = 16_000_000

export interface BoundedLoaderOptions extends LoaderOptions {
  readonly concurrency: number
}

/**
 * Keeps as many events in memory as fit there. The others stay in the storage, in order, and are loaded when events have
 * ended: so a wake takes a bounded time and bounded memory, whatever the object holds.
 */
export class BoundedLoader extends Loader<BoundedLoaderOptions> {
  readonly #left: Set<number>
  /** JSON of the events in memory, in characters. */
  #text = 0

  constructor(options: BoundedLoaderOptions) {
    super(options)
    this.#left = new Set(options.file.events.rows())
  }

  /** The number of events that are in the storage only. */
  get left(): number {
    return this.#left.size
  }

  get isOver(): boolean {
    return this.left === 0
  }

  /** Loads events while there is room. Returns the number of those that are left. */
  fill(): number {
    const { jobs, concurrency, recovery, logger, hasStopped } = this.options
    if (this.isOver || hasStopped()) return this.left
    let due = 0
    for (const { state } of jobs) if (state !== 'retrying') due++
    try {
      for (const row of this.#left) {
        if (due >= Math.max(maxDue, 2 * concurrency) || this.#text >= maxText) break
        const job = this.loadReadable(row)
        this.#left.delete(row)
        if (job === undefined) continue
        recovery.inherit(job)
        if (job.state !== 'retrying') due++
      }
    } catch (error) {
      // The alarm tries again.
      logger.error({ err: error, events: this.left }, 'the inbox could not read events that wait in its storage yet')
    }
    return this.left
  }

  protected override load(row: number): SqliteJob | undefined {
    const job = super.load(row)
    this.#text += job?.textLength ?? 0
    return job
  }

  /** Handles an event that was just stored. If others are in the storage only, its turn is after theirs. */
  accepted(accepted: AcceptedEvent, row: number, size: number): void {
    const { jobs, recovery, transactions } = this.options
    if (!this.isOver || this.#text >= maxText) return void this.#left.add(row)
    const job = new SqliteJob(accepted, row, transactions)
    job.textLength = size
    this.#text += size
    jobs.add(job)
    recovery.add(job)
  }

  replayed(row: number): void {
    this.#left.add(row)
    this.fill()
  }

  /** Called when an event has been handled, or is a dead letter. */
  ended({ textLength: size }: SqliteJob): void {
    this.#text -= size
    this.fill()
  }

  /** Loads an event before its turn if it waits for a retry: it has lost its place in the order already. */
  loadRetry(key: string): SqliteJob | undefined {
    const { events } = this.options.file
    const row = this.isOver ? undefined : events.rowOf(key)
    if (row === undefined || !this.#left.has(row)) return undefined
    const stored = events.get(row)
    if (stored === undefined || waitOf(stored).dueInMs <= 0) return undefined
    const job = this.load(row)
    this.#left.delete(row)
    return job
  }

  counts(): Omit<InboxStats, 'deadLetters'> {
    return this.countsWith(this.#left)
  }
}
