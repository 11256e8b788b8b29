import type { SqliteDatabase } from './database.ts'
import { prepareOwner } from './statements.ts'

/** The row of the process that handles the events. Construct it and call its methods in a transaction. */
export class OwnerRow {
  /** During recovery: minimum time before an event starts (ms). */
  readonly holdMs: number = 0
  protected readonly sql: ReturnType<typeof prepareOwner>
  protected readonly token: string
  /** Row left by a process that crashed, or stopped during its recovery. */
  protected readonly previous: { readonly pid: number; readonly running: string | null } | undefined
  #isRecovering = false

  /** Takes over from the previous process, and counts its crash against the events it listed as running. */
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

  recordRunning(rows: readonly number[]): void {
    this.sql.record.run(JSON.stringify(rows), this.token)
  }

  /** Ends the recovery: this process stops listing its running events. */
  recovered(): void {
    this.sql.record.run(null, this.token)
    this.#isRecovering = false
  }

  /** Releases the storage. During recovery the row stays, so the next process continues it. */
  release(): void {
    if (this.#isRecovering) this.recordRunning([])
    else this.sql.remove.run(this.token)
  }
}
