import { unref } from '../../internal/timers.ts'
import type { JobAttempt } from '../engine/job.ts'
import { cutOff, type DeadResult, maxCrashes, type RetryResult, type Settling } from '../engine/settling.ts'
import { Suspects } from '../engine/suspects.ts'
import type { InboxHost } from '../inbox.ts'
import type { CrashRecords } from './crash-records.ts'
import type { SqliteJob } from './job.ts'
import { writeHandled } from './rows.ts'
import type { Commits, SqliteTables } from './storage.ts'

/** The pause before a failed write is tried again, in ms. */
const pauseMs = 1_000

export type SettlingFile = SqliteTables & { readonly owner: CrashRecords }

interface Entry {
  readonly what: string
  readonly job: SqliteJob
  readonly canWait: boolean
  readonly write: () => void
  readonly isNeeded: () => boolean
  readonly written: () => void
}

/** Records the outcome of events in the file, in the same commits as the events that are being accepted. */
export class SqliteSettling implements Settling<SqliteJob> {
  readonly retries = 'here'
  readonly #commits: Commits
  readonly #file: SettlingFile
  readonly #host: InboxHost
  readonly #onEnded: () => void
  #suspects: Suspects<SqliteJob> | undefined

  /** @param onEnded called when the end of an event has been recorded */
  constructor(commits: Commits, file: SettlingFile, host: InboxHost, onEnded = () => {}) {
    this.#commits = commits
    this.#file = file
    this.#host = host
    this.#onEnded = onEnded
  }

  /**
   * Starts the search for the event that made the previous process crash, if it crashed. Every attempt waits for its
   * turn until the search has ended. Call `consider` for each event that the process left.
   */
  investigate(concurrency: number): void {
    const { predecessor } = this.#file.owner
    if (predecessor === undefined) return
    this.#suspects = new Suspects({
      concurrency,
      predecessor,
      recordAlone: (job) => this.#recordAlone(job),
      onOver: (cleared) => this.#endInvestigation(cleared),
    })
  }

  /** Considers an event that the previous process left. Call it in order of acceptance, before the event starts. */
  consider(job: SqliteJob): void {
    this.#suspects?.consider(job)
  }

  allConsidered(): void {
    this.#suspects?.allConsidered()
  }

  /** Ends the search. Waiting attempts never start. */
  stop(): void {
    this.#suspects?.stop()
  }

  /** Records the one event that runs alone, or that no event runs alone. */
  #recordAlone(job: SqliteJob | undefined): Promise<void> {
    return this.#commits
      .add(() => this.#file.owner.recordAlone(job?.row ?? null))
      .catch((error) => this.#host.logger.error({ err: error }, 'the inbox could not record which event runs alone'))
  }

  /** @param cleared `true` if every suspect has been handled */
  #endInvestigation(cleared: boolean): void {
    this.#suspects = undefined
    // Without this record the search after the next crash takes longer. This does no harm.
    if (cleared) this.#commits.add(() => this.#file.owner.forgetCrashes()).catch(() => {})
  }

  begin({ job }: JobAttempt<SqliteJob>): Promise<DeadResult | undefined> | undefined {
    // If another process has taken over the file, this one ends its jobs here.
    if (!this.#commits.isOwner()) return undefined
    if (this.#suspects === undefined) return undefined
    if (job.crashes >= maxCrashes) return Promise.resolve(cutOff(job, this.#host.logger))
    return this.#suspects.enter(job).then(() => undefined)
  }

  complete({ job }: JobAttempt<SqliteJob>, recorded: () => void): void {
    const record = writeHandled(job, this.#host.handlersOf(job.accepted.event))
    // If the process ends before that, its handlers run again, as after any crash.
    this.#end(job, { canWait: true, write: () => this.#file.events.handled(job.row, record) }, recorded)
  }

  deadLetter(job: SqliteJob, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, accepted, number: attempts, row } = job
    const { events, deadLetters } = this.#file
    const failedAttempts = job.failedWith(failures)
    const deadLetter = { ...accepted, key, attempts, failures, failedAttempts, diedAt: new Date() }
    const move = () => {
      const allCompleted = events.allCompleted(row, completed)
      events.remove(row)
      deadLetters.add(row, { ...deadLetter, completed: allCompleted })
    }
    this.#end(job, { canWait: false, write: move }, recorded)
  }

  /**
   * Ends an event. If it stayed in the file, it would be handled again, so this process keeps it until the end is
   * written.
   */
  #end(job: SqliteJob, end: Pick<Entry, 'canWait' | 'write'>, recorded: () => void): void {
    // A job is released when the inbox closes.
    const isNeeded = () => !job.hasEnded
    const written = () => {
      recorded()
      this.#onEnded()
    }
    this.#insist({ what: 'the end of an event', job, ...end, isNeeded, written })
    this.#suspects?.leave(job)
  }

  retry({ job }: JobAttempt<SqliteJob>, { delayMs }: RetryResult): void {
    const { number, completed, failedAttempts } = job
    const due = { at: Date.now() + delayMs, inMs: delayMs }
    const earlier = { attempts: number - 1, completed, failedAttempts }
    job.postponed = due
    // The record of a later attempt replaces this one.
    const isNewest = () => job.postponed === due && job.number === number && !job.hasEnded
    const write = () => this.#file.events.postpone(job.row, earlier, due)
    this.#insist({ what: 'a retry', job, canWait: false, write, isNeeded: isNewest, written() {} })
    this.#suspects?.leave(job)
  }

  /** Tries until the entry is written, as long as it is needed. */
  #insist(entry: Entry): void {
    const { what, job, canWait, write, isNeeded, written } = entry
    this.#commits.add(write, { canWait }).then(written, (error) => {
      if (!isNeeded()) return
      this.#failed(what, job, error)
      unref(setTimeout(() => isNeeded() && this.#insist(entry), pauseMs))
    })
  }

  /** Records that the next attempt was started by hand, so that the event does not wait for it again after a crash. */
  bringForward(job: SqliteJob): void {
    this.#commits
      .add(() => this.#file.events.makeDue(job.row))
      .catch((error) => this.#failed('that a retry has started', job, error))
  }

  progress(job: SqliteJob, completed: readonly string[]): Promise<void> {
    return this.#commits
      .add(() => this.#file.events.complete(job.row, completed))
      .catch((error) => this.#failed('that a handler succeeded', job, error))
  }

  #failed(what: string, { key }: SqliteJob, error: unknown): void {
    this.#host.logger.error({ key, err: error }, `the inbox could not record ${what}`)
  }
}
