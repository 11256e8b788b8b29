import { statSync } from 'node:fs'
import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import type { SqliteStatement } from './connection.ts'
import type { OwnedFile } from './file.ts'

/** Suspicious WAL size (bytes). SQLite checkpoints from 16 MB on. */
const largeBytes = 64 * 1_024 * 1_024

/** WAL pages left by a checkpoint that only an open read explains. */
const stuckPages = 8_000

/** Warns once when an open read blocks checkpoints, so the WAL keeps growing. */
export class LogSize {
  readonly #file: OwnedFile
  readonly #logger: Logger
  readonly #checkpoint: SqliteStatement
  readonly #outage = new OutageLog()

  constructor(file: OwnedFile, logger: Logger) {
    this.#file = file
    this.#logger = logger
    this.#checkpoint = file.database.prepare('PRAGMA main.wal_checkpoint(PASSIVE)')
  }

  check(): void {
    const path = `${this.#file.path}-wal`
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (bytes < largeBytes || !this.#isStuck()) return this.#outage.worked()
    const fix = `End the reading program or its transaction (see fuser ${this.#file.path}), or close the iterator`
    const message = `the inbox's WAL keeps growing: an open read blocks its checkpoint. ${fix}`
    this.#outage.failed(() => this.#logger.warn({ path, bytes }, message))
  }

  #isStuck(): boolean {
    try {
      const { log, checkpointed } = this.#checkpoint.get() as { readonly log: number; readonly checkpointed: number }
      return log - checkpointed > stuckPages
    } catch {
      // SQLITE_LOCKED: this connection has the open read.
      return true
    }
  }
}
