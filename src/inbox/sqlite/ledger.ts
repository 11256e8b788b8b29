import type { Logger } from '../../internal/logger.ts'
import { unref } from '../../internal/timers.ts'
import type { Dead, Ledger } from '../shared/handling.ts'
import type { Job } from '../shared/job.ts'
import type { GroupCommit } from './commits.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { SqliteEvents } from './events.ts'
import type { SqliteFile } from './file.ts'

/** How often the process may end during one attempt; an event that is at fault itself must not go on for ever. */
const maxCutOffs = 10

/** How long to wait before what could not be written is written again, in ms. */
const pauseMs = 1_000

/** What has to be written down. */
interface Entry {
  readonly what: string
  readonly job: Job
  readonly write: () => void
  readonly isNeeded: () => boolean
  readonly written: () => void
}

/** Writes to the file what became of an event, together with the events that are accepted in the same turn. */
export class SqliteLedger implements Ledger {
  readonly #commits: GroupCommit
  readonly #events: SqliteEvents
  readonly #letters: SqliteDeadLetters
  readonly #logger: () => Logger

  constructor(commits: GroupCommit, { events, letters }: SqliteFile, logger: () => Logger) {
    this.#commits = commits
    this.#events = events
    this.#letters = letters
    this.#logger = logger
  }

  /** Counts the attempts at what was read from the file: an event that made the process crash is among that. */
  begin(job: Job): Promise<Dead | undefined> | undefined {
    if (job.begun === undefined) return undefined
    if (job.begun >= maxCutOffs) return Promise.resolve(this.#cutOff(job))
    job.begun++
    const { row, begun } = job
    return this.#commits
      .add(() => this.#events.begin(row, begun))
      .catch((error) => this.#failed('that an attempt began', job, error))
      .then(() => undefined)
  }

  #cutOff({ key, attempt }: Job): Dead {
    const message = `its handling was cut off ${maxCutOffs} times`
    this.#logger().error({ key }, `an event became a dead letter: ${message}`)
    return { status: 'dead', completed: attempt.completed, failures: [{ handler: 'none', message }] }
  }

  complete(job: Job, recorded: () => void): void {
    this.#end(job, () => this.#events.remove(job.row), recorded)
  }

  bury(job: Job, { completed, failures }: Dead, recorded: () => void): void {
    const { key, accepted, attempt } = job
    const letter = { ...accepted, key, attempts: attempt.number, completed, failures, diedAt: new Date() }
    const bury = () => {
      this.#events.remove(job.row)
      this.#letters.add(job.row, letter)
    }
    this.#end(job, bury, recorded)
  }

  /** The event is not handled again until this is written, and would be if it were left in the file. */
  #end(job: Job, write: () => void, recorded: () => void): void {
    // It has to be given up when the inbox closes.
    const isOpen = () => !job.hasEnded
    this.#insist({ what: 'the end of an event', job, write, isNeeded: isOpen, written: recorded })
  }

  postpone(job: Job, dueAt: number): void {
    const { attempt } = job
    const before = { attempts: attempt.number - 1, completed: attempt.completed }
    // What a later attempt comes to takes its place.
    const waits = () => job.state === 'retrying' && job.attempt === attempt && !job.hasEnded
    const write = () => this.#events.postpone(job.row, before, dueAt)
    this.#insist({ what: 'a retry', job, write, isNeeded: waits, written() {} })
  }

  /** Tries until it is written, as long as it needs to be. */
  #insist(entry: Entry): void {
    const { what, job, write, isNeeded, written } = entry
    this.#commits.add(write).then(written, (error) => {
      if (!isNeeded()) return
      this.#failed(what, job, error)
      unref(setTimeout(() => isNeeded() && this.#insist(entry), pauseMs))
    })
  }

  progress(job: Job, completed: readonly string[]): Promise<void> {
    return this.#commits
      .add(() => this.#events.complete(job.row, completed))
      .catch((error) => this.#failed('that a handler succeeded', job, error))
  }

  #failed(what: string, { key }: Job, error: unknown): void {
    this.#logger().error({ key, err: error }, `the inbox could not write down ${what}`)
  }
}
