import { statSync } from 'node:fs'
import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { GroupCommit } from './commits.ts'
import { prepareAll } from './connection.ts'
import type { OwnedFile } from './file.ts'

const lookMs = 250

const pragmas = { version: 'PRAGMA data_version', checkpoint: 'PRAGMA main.wal_checkpoint(PASSIVE)' }

/** Suspicious WAL size (bytes). SQLite checkpoints from 16 MB on. */
const largeBytes = 64 * 1_024 * 1_024

/** WAL pages left by a checkpoint that only an open read explains. */
const stuckPages = 8_000

export interface WatchOptions {
  readonly file: OwnedFile
  readonly commits: GroupCommit
  readonly logger: Logger
  readonly changed: () => void
}

/** Notices other processes' changes to the file, its loss, and an open read because of which the WAL keeps growing. */
export class FileWatch {
  readonly #options: WatchOptions
  readonly #sql
  readonly #outage = new OutageLog()
  readonly #growth = new OutageLog()
  #version: number | undefined
  readonly #timer: Timer

  constructor(options: WatchOptions) {
    this.#options = options
    this.#sql = prepareAll(options.file.database, pragmas)
    this.#version = this.#currentVersion()
    this.#timer = setInterval(() => this.#look(), lookMs)
    unref(this.#timer)
  }

  /** A number that changes with every write by another connection. */
  #currentVersion(): number {
    return (this.#sql.version.get() as { data_version: number }).data_version
  }

  #look(): void {
    const { commits, logger, changed } = this.#options
    // Between deliveries, nothing else notices a deleted file.
    if (!commits.isOwner()) return
    try {
      const version = this.#currentVersion()
      const hasChanged = version !== this.#version
      this.#version = version
      if (hasChanged) changed()
      this.#checkGrowth()
      this.#outage.worked()
    } catch (error) {
      this.#version = undefined
      this.#outage.failed(() => logger.warn({ err: error }, 'the inbox could not read its file'))
    }
  }

  #checkGrowth(): void {
    const { file, logger } = this.#options
    const path = `${file.path}-wal`
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (bytes < largeBytes || !this.#isStuck()) return this.#growth.worked()
    const fix = `End the reading program or its transaction (see fuser ${file.path}), or close the iterator`
    const message = `the inbox's WAL keeps growing: an open read blocks its checkpoint. ${fix}`
    this.#growth.failed(() => logger.warn({ path, bytes }, message))
  }

  #isStuck(): boolean {
    try {
      const { log, checkpointed } = this.#sql.checkpoint.get() as {
        readonly log: number
        readonly checkpointed: number
      }
      return log - checkpointed > stuckPages
    } catch {
      // SQLITE_LOCKED: this connection has the open read.
      return true
    }
  }

  /** Makes the next check report a change. */
  lookAgain(): void {
    this.#version = undefined
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
