import type { OutageLog } from '../../internal/outage-log.ts'
import { unref } from '../../internal/timers.ts'
import type { JobAttempt } from '../engine/job.ts'
import { cutOff, type DeadResult, type RetryResult, type Settling } from '../engine/settling.ts'
import type { InboxHost } from '../inbox.ts'
import type { SqliteJob } from './job.ts'
import { hasCrashedTooOften, type Recovery } from './recovery.ts'
import { writeHandled } from './rows.ts'
import type { Commits, SqliteTables } from './storage.ts'

/** The pause before a failed write is tried again, in ms. */
const pauseMs = 1_000

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
  readonly #file: SqliteTables
  readonly #host: InboxHost
  readonly #onEnded: (job: SqliteJob) => void
  readonly #outage: OutageLog
  readonly #recovery: Recovery

  /**
   * @param outage shared by all who write the file
   * @param onEnded called when the end of an event has been recorded
   */
  constructor(
    commits: Commits,
    file: SqliteTables,
    host: InboxHost,
    outage: OutageLog,
    recovery: Recovery,
    onEnded: (job: SqliteJob) => void = () => {},
  ) {
    this.#commits = commits
    this.#file = file
    this.#host = host
    this.#outage = outage
    this.#recovery = recovery
    this.#onEnded = onEnded
  }

  begin(attempt: JobAttempt<SqliteJob>): Promise<DeadResult | undefined> | undefined {
    // If another process has taken over the file, this one ends its jobs here.
    if (!this.#commits.isOwner()) return undefined
    if (hasCrashedTooOften(attempt.job)) return Promise.resolve(cutOff(attempt.job, this.#host.logger))
    return this.#recovery.begin(attempt)
  }

  complete({ job }: JobAttempt<SqliteJob>, recorded: () => void): void {
    const record = writeHandled(job, this.#host.handlersOf(job.accepted.event))
    // If the process ends before that, its handlers run again, as after any crash. The next suspect waits for it.
    const canWait = job.crashes === 0
    this.#end(job, { canWait, write: () => this.#file.events.handled(job.row, record) }, recorded)
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
      this.#recovery.ended(job)
      this.#onEnded(job)
    }
    this.#insist({ what: 'the end of an event', job, ...end, isNeeded, written })
  }

  retry(attempt: JobAttempt<SqliteJob>, { delayMs }: RetryResult, recorded: () => void): void {
    const { job } = attempt
    const { number, completed, failedAttempts } = job
    const due = { at: Date.now() + delayMs, inMs: delayMs }
    const earlier = { attempts: number - 1, completed, failedAttempts }
    job.postponed = due
    // The record of a later attempt replaces this one.
    const isNewest = () => job.postponed === due && job.number === number && !job.hasEnded
    const write = () => {
      this.#file.events.postpone(job.row, earlier, due)
      this.#recovery.failed(attempt)
    }
    const written = () => {
      recorded()
      this.#recovery.ended(job)
    }
    this.#insist({ what: 'a retry', job, canWait: false, write, isNeeded: isNewest, written })
  }

  /** Tries until the entry is written, as long as it is needed. */
  #insist(entry: Entry): void {
    const { what, job, canWait, write, isNeeded, written } = entry
    const done = () => {
      this.#outage.worked()
      written()
    }
    this.#commits.add(write, { canWait }).then(done, (error) => {
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
    this.#outage.failed(() => this.#host.logger.error({ key, err: error }, `the inbox could not record ${what}`))
  }
}
