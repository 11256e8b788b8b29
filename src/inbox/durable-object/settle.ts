import type { DeadResult } from '../engine/engine.ts'
import type { SqliteJob } from '../sqlite-tables/job.ts'
import { SqliteLedger } from '../sqlite-tables/settle.ts'

/** The SQLite inbox's ledger, which says when an event has ended, and tells jobs when they are due. */
export class ObjectLedger extends SqliteLedger {
  readonly #onEnded: () => void

  constructor(...[commits, file, host, onEnded]: [...ConstructorParameters<typeof SqliteLedger>, () => void]) {
    super(commits, file, host)
    this.#onEnded = onEnded
  }

  override complete(job: SqliteJob, recorded: () => void): void {
    super.complete(job, this.#andThen(recorded))
  }

  override deadLetter(job: SqliteJob, dead: DeadResult, recorded: () => void): void {
    super.deadLetter(job, dead, this.#andThen(recorded))
  }

  override postpone(job: SqliteJob, dueAt: number): void {
    job.dueAt = performance.now() + dueAt - Date.now()
    super.postpone(job, dueAt)
  }

  #andThen(recorded: () => void): () => void {
    return () => {
      recorded()
      this.#onEnded()
    }
  }
}
