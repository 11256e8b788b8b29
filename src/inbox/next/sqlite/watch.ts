import type { Logger } from '../../../internal/logger.ts'
import { OutageLog } from '../../../internal/outage-log.ts'
import { type Timer, unref } from '../../../internal/timers.ts'
import type { GroupCommit } from './commits.ts'
import type { OwnedFile } from './file.ts'
import { versionOf } from './lease.ts'
import { LogSize } from './log-size.ts'

const lookMs = 250

/** Notices other processes' changes to the file. */
export class FileWatch {
  readonly #commits: GroupCommit
  readonly #logger: Logger
  readonly #onChanged: () => void
  readonly #readVersion: () => number
  readonly #log: LogSize
  readonly #outage = new OutageLog()
  #version: number | undefined
  readonly #timer: Timer

  constructor(file: OwnedFile, commits: GroupCommit, logger: Logger, onChanged: () => void) {
    this.#commits = commits
    this.#logger = logger
    this.#onChanged = onChanged
    this.#readVersion = versionOf(file.database)
    this.#log = new LogSize(file, logger)
    this.#version = this.#readVersion()
    this.#timer = setInterval(() => this.#look(), lookMs)
    unref(this.#timer)
  }

  #look(): void {
    // Between deliveries, nothing else notices a deleted file.
    if (!this.#commits.isOwner()) return
    try {
      const version = this.#readVersion()
      const hasChanged = version !== this.#version
      this.#version = version
      if (hasChanged) this.#onChanged()
      this.#log.check()
      this.#outage.worked()
    } catch (error) {
      this.#version = undefined
      this.#outage.failed(() => this.#logger.warn({ err: error }, 'the inbox could not read its file'))
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
