import type { Logger } from '../../internal/logger.ts'
import { later, sleep } from '../../internal/timers.ts'
import type { JobAttempt } from '../engine/job.ts'
import { maxCrashes } from '../engine/settling.ts'
import type { SqliteJob } from './job.ts'
import type { OwnerRow } from './owner-row.ts'
import type { Commits } from './storage.ts'

// Keeps an event that crashes its process from doing so forever, and from stopping the others. The storage has a count of
// crashes for each event, and for the process the list of the events that run:
//
//   normal      There is no list: it would take a write for each start.
//   recovering  Follows a process that crashed. An event is on the list before it starts, and is removed when the end of
//               its attempt is recorded.
//               -> normal, when each due event that the crashed process left has had an attempt.
//
// The process that takes over from a crashed one counts the crash for each event on its list, and for no other. So a crash
// that comes before anything has started, as in a process that cannot boot, counts for none. The first crash counts for
// none either, since there is no list: after it, everything starts as usual, only recorded.
//
//   healthy   No crashes. Starts when its lane and a slot are free.
//   suspect   Has crashes. Suspects start one at a time, beside the healthy events and the one with the least crashes
//             first, so that a slow one is not running at each crash of another. A suspect that waits for its turn takes no
//             slot, and holds up only the later events of its media item.
//             -> healthy, when an attempt has ended, whatever its result.
//             -> dead letter, instead of an attempt, once it has 9 crashes. With the one that was not recorded, it has
//                ended 10 processes.

/** Returns `true` for an event that may not crash another process. */
export const hasCrashedTooOften = ({ crashes }: SqliteJob): boolean => crashes >= maxCrashes - 1

export interface RecoveryOptions {
  readonly owner: Pick<OwnerRow, 'isRecovering' | 'holdMs' | 'recordRunning' | 'recovered'>
  readonly commits: Commits
  readonly logger: Logger
  /** Adds a job to its lane. */
  readonly start: (job: SqliteJob) => void
}

/** Decides when events may start after a crash, and records which do. */
export class Recovery {
  readonly #options: RecoveryOptions
  readonly #held: Promise<void>
  /** The due jobs of the crashed process that have had no attempt. */
  readonly #inherited = new Set<SqliteJob>()
  #hasAll = false
  readonly #running = new Map<SqliteJob, JobAttempt<SqliteJob>>()
  #suspects: SqliteJob[] = []
  /** The suspect whose turn it is. */
  #current: SqliteJob | undefined
  /** The jobs behind the suspect of their lane. */
  readonly #behind = new Map<string, SqliteJob[]>()
  #isOver: boolean

  constructor(options: RecoveryOptions) {
    this.#options = options
    this.#isOver = !options.owner.isRecovering
    this.#held = this.#isOver ? Promise.resolve() : sleep(options.owner.holdMs)
  }

  /** Adds a due job to its lane when it may start. */
  add(job: SqliteJob): void {
    const behind = this.#behind.get(job.lane)
    const isSuspect = job.crashes > 0 && !hasCrashedTooOften(job)
    if (behind === undefined && !isSuspect) return this.#options.start(job)
    job.state = 'waiting'
    if (behind !== undefined) return void behind.push(job)
    this.#behind.set(job.lane, [])
    this.#suspects.push(job)
    this.#turn()
  }

  /** Call it for each event that the crashed process left. */
  inherit(job: SqliteJob): void {
    if (!this.#isOver && job.state !== 'retrying') this.#inherited.add(job)
  }

  /** Call it once all of them are loaded. */
  hasAll(): void {
    this.#hasAll = true
    this.#turn()
    this.#check()
  }

  /** Records the start of an attempt. Resolves when it may start. */
  begin(attempt: JobAttempt<SqliteJob>): Promise<undefined> | undefined {
    if (this.#isOver) return undefined
    const { job } = attempt
    job.state = 'waiting'
    this.#running.set(job, attempt)
    return this.#held.then(() => this.#record(job))
  }

  async #record(job: SqliteJob): Promise<undefined> {
    const { commits, logger } = this.#options
    try {
      if (!job.hasEnded) await commits.add(() => this.#write())
    } catch (error) {
      if (!job.hasEnded) logger.error({ key: job.key, err: error }, 'the inbox could not record that an event starts')
    }
    if (!job.hasEnded) job.state = 'running'
  }

  #write(): void {
    this.#options.owner.recordRunning(Array.from(this.#running, ([{ row }]) => row))
  }

  /** Removes an attempt that failed from the list. Part of the transaction that records its retry. */
  failed(attempt: JobAttempt<SqliteJob>): void {
    if (this.#running.get(attempt.job) === attempt) this.#running.delete(attempt.job)
    if (!this.#isOver) this.#write()
  }

  /** Call it once the end of an attempt is recorded. */
  ended(job: SqliteJob): void {
    if (job.hasEnded) this.#running.delete(job)
    this.#inherited.delete(job)
    if (job === this.#current) {
      this.#current = undefined
      const behind = this.#behind.get(job.lane) ?? []
      this.#behind.delete(job.lane)
      for (const next of behind) this.add(next)
      this.#turn()
    }
    this.#check()
  }

  /** Starts the next suspect, at the end of this turn of the event loop: others may be loaded in it. */
  #turn(): void {
    later(() => {
      if (this.#current !== undefined) return
      this.#suspects.sort((a, b) => a.crashes - b.crashes || a.row - b.row)
      const [next] = this.#suspects
      // One with less crashes may still have to be loaded.
      if (next === undefined || (next.crashes > 1 && !this.#hasAll)) return
      this.#suspects.shift()
      this.#current = next
      this.#options.start(next)
    })
  }

  #check(): void {
    if (this.#isOver || !this.#hasAll || this.#inherited.size > 0) return
    this.#isOver = true
    const { commits, owner } = this.#options
    // Without this record the next process recovers, which does no harm.
    commits.add(() => owner.recovered()).catch(() => {})
  }

  /** Starts no more suspects. */
  stop(): void {
    this.#isOver = true
    this.#suspects = []
    this.#behind.clear()
  }
}
