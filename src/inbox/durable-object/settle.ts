import type { JobAttempt } from '../engine/job.ts'
import type { DeadResult } from '../engine/settling.ts'
import type { SqliteJob } from '../sqlite-tables/job.ts'
import { SqliteSettling } from '../sqlite-tables/settle.ts'

/** The settling of the SQLite inbox, which also says when an event has ended. */
export class ObjectSettling extends SqliteSettling {
  readonly #onEnded: () => void

  constructor(...[commits, file, host, onEnded]: [...ConstructorParameters<typeof SqliteSettling>, () => void]) {
    super(commits, file, host)
    this.#onEnded = onEnded
  }

  override complete(attempt: JobAttempt<SqliteJob>, recorded: () => void): void {
    super.complete(attempt, this.#andThen(recorded))
  }

  override deadLetter(job: SqliteJob, dead: DeadResult, recorded: () => void): void {
    super.deadLetter(job, dead, this.#andThen(recorded))
  }

  #andThen(recorded: () => void): () => void {
    return () => {
      recorded()
      this.#onEnded()
    }
  }
}
