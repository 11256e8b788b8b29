import type { SqliteDatabase } from './database.ts'
import { prepareOwner } from './statements.ts'

/** The row of the process that handles the events. Make it, and call each method, in a transaction. */
export class OwnerRow {
  /** The minimum time before an event starts while this process recovers, in ms. */
  readonly holdMs: number = 0
  protected readonly sql: ReturnType<typeof prepareOwner>
  protected readonly token: string
  /** The row that the previous process left: it crashed, or it was recovering itself. */
  protected readonly previous: { readonly pid: number; readonly running: string | null } | undefined
  #isRecovering = false

  /** Takes over from the previous process, and counts its crash for the events that it recorded as running. */
  constructor(database: SqliteDatabase, token: string) {
    this.sql = prepareOwner(database)
    this.token = token
    this.previous = (this.sql.get.get() as OwnerRow['previous'] | null) ?? undefined
    if (this.previous === undefined) return
    this.sql.countCrash.run()
    this.sql.removeAll.run()
  }

  get isRecovering(): boolean {
    return this.#isRecovering
  }

  protected begin(isRecovering: boolean, pid = 0): void {
    this.#isRecovering = isRecovering
    this.sql.add.run(this.token, pid, isRecovering ? '[]' : null)
  }

  /** Records the rows of the events that run. */
  recordRunning(rows: readonly number[]): void {
    this.sql.record.run(JSON.stringify(rows), this.token)
  }

  /** From now on, this process does not record what runs. */
  recovered(): void {
    this.sql.record.run(null, this.token)
    this.#isRecovering = false
  }

  /** Releases the storage. While this process recovers, its row stays, so that the next one continues that. */
  release(): void {
    if (this.#isRecovering) this.recordRunning([])
    else this.sql.remove.run(this.token)
  }
}
