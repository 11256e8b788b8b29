import type { Predecessor } from '../engine/suspects.ts'
import type { SqliteDatabase } from './database.ts'
import { prepareOwner } from './statements.ts'

interface OwnerRow {
  readonly pid: number
  readonly crashes: number
  readonly alone: number | null
}

/** The records of crashes, in the row of the process that handles the events. */
export abstract class CrashRecords {
  /** `undefined` if there was none, or if it closed the storage. */
  abstract readonly predecessor: Predecessor | undefined
  protected readonly sql: ReturnType<typeof prepareOwner>
  protected readonly token: string
  /** The row of the previous process, if it did not close the storage. */
  protected readonly previous: OwnerRow | undefined

  /** Removes the row of the previous process. If an event ran alone, it counts the crash. Part of a transaction. */
  constructor(database: SqliteDatabase, token: string) {
    this.sql = prepareOwner(database)
    this.token = token
    this.previous = (this.sql.get.get() as OwnerRow | null | undefined) ?? undefined
    if (this.previous === undefined) return
    if (this.previous.alone !== null) this.sql.countCrash.run(this.previous.alone)
    this.sql.removeAll.run()
  }

  /** Records the event that runs alone. If the process ends now, that event made it crash. */
  recordAlone(row: number | null): void {
    this.sql.setAlone.run(row, this.token)
  }

  /** Records that the events of the time before a crash were handled without another crash. */
  forgetCrashes(): void {
    this.sql.setCrashes.run(0, this.token)
  }
}
